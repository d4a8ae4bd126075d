#define _GNU_SOURCE
#include "interrupt.h"

#include <signal.h>

/* A signal has no other way to say something. */
static volatile sig_atomic_t pressed;

static void press(int number) {
    (void)number;
    pressed = 1;
}

void cli_interrupt_watch(bool always) {
    struct sigaction action = {.sa_handler = press, .sa_flags = always ? 0 : (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool cli_interrupted(void) {
    return pressed;
}

void cli_interrupt_forget(void) {
    pressed = 0;
}
