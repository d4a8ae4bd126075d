/* Any bytes as a block of EXIF: 1..8, and 1 for anything cut off the front of a header. */
#include "media/exif.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int orientation = qvl_exif_orientation(data, size);
    if (orientation < 1 || orientation > 8) abort();
    if (size >= 8 && data[0] != 'I' && data[0] != 'M' && data[0] != 'E' && orientation != 1) abort();
    return 0;
}
