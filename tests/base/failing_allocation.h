/* The C library's malloc family, interposed for the whole process: counts what is live, and lets one allocation fail.
 * Shared libraries see it too. Not for builds with sanitizers, which bring their own. */
#ifndef QVL_TEST_FAILING_ALLOCATION_H
#define QVL_TEST_FAILING_ALLOCATION_H

/* After this many more allocations the next one fails, once; negative: none does. */
void allocation_fails_after(long count);
/* Whether the failure that was asked for has not come yet; stops waiting for it. */
int allocation_failure_is_due(void);
long live_allocations(void);

#endif
