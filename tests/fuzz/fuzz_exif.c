/* Any bytes as a block of EXIF and as XMP: 1..8, and EXIF's word before XMP's. */
#include "media/exif.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t three[] = "tiff:Orientation=\"3\"";
    int exif = qvl_orientation_of(&(qvl_metadata){.exif = data, .exif_count = size});
    int xmp = qvl_orientation_of(&(qvl_metadata){.xmp = data, .xmp_count = size});
    int both = qvl_orientation_of(&(qvl_metadata){data, three, size, sizeof three - 1});
    if (exif < 1 || exif > 8 || xmp < 1 || xmp > 8) abort();
    if (both != exif && (both != 3 || exif != 1)) abort();
    if (size >= 8 && data[0] != 'I' && data[0] != 'M' && data[0] != 'E' && both != 1) abort();
    return 0;
}
