/* Every read goes through a cursor that runs dry instead of over: then all further reads give 0, and `dry` says
 * that the box was too short. */
#include "media/avif_boxes.h"

#include <string.h>

/* More than any file has. Each costs a walk through boxes, and a hostile file could list millions. */
#define MAX_LOOKUPS 500

typedef struct cursor {
    const uint8_t *at;
    size_t left;
    bool dry;
} cursor;

static uint64_t take(cursor *c, size_t size) {
    if (size == 0) return 0; /* some fields have no bytes in some files */
    if (size > c->left) {
        c->dry = true;
        c->left = 0;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | c->at[i];
    c->at += size;
    c->left -= size;
    return value;
}

typedef struct box {
    char type[5];
    cursor body;
} box;

/* The next box of those in c. False at their end, and where what is left is not a whole box: cut says which. */
static bool next_box(cursor *c, box *b, bool *cut) {
    *cut = c->left > 0;
    if (c->left < 8) return false;
    uint64_t size = take(c, 4), head = 8;
    memcpy(b->type, c->at, 4);
    b->type[4] = 0;
    take(c, 4);
    if (size == 1) {
        size = take(c, 8);
        head = 16;
    } else if (size == 0) { /* to the end of the file */
        size = c->left + head;
    }
    if (c->dry || size < head || size - head > c->left) return false;
    b->body = (cursor){c->at, (size_t)(size - head), false};
    c->at += b->body.left;
    c->left -= b->body.left;
    *cut = false;
    return true;
}

static bool is(const box *b, const char *type) {
    return memcmp(b->type, type, 4) == 0;
}

/* The first box of a type inside a box; its body is empty if there is none. */
static cursor find(cursor parent, const char *type) {
    box b;
    bool cut;
    while (next_box(&parent, &b, &cut))
        if (is(&b, type)) return b.body;
    return (cursor){0};
}

static unsigned take_version(cursor *c) {
    unsigned version = (unsigned)take(c, 1);
    take(c, 3);
    return version;
}

/* ---- the item's own boxes */

static uint64_t main_id(cursor pitm) {
    return take(&pitm, take_version(&pitm) == 0 ? 2 : 4);
}

/* The four letters that say how an item is coded. */
static void find_type(cursor iinf, uint64_t id, char type[5]) {
    take(&iinf, take_version(&iinf) == 0 ? 2 : 4); /* their count */
    box b;
    bool cut;
    while (next_box(&iinf, &b, &cut)) {
        unsigned version = take_version(&b.body);
        if (!is(&b, "infe") || version < 2) continue;
        uint64_t found = take(&b.body, version == 2 ? 2 : 4);
        take(&b.body, 2); /* protection */
        if (found != id || b.body.left < 4) continue;
        memcpy(type, b.body.at, 4);
        return;
    }
}

/* Calls fn with every property of an item, in order. */
typedef void (*property_fn)(const box *property, qvl_avif_item *item);

static void for_each_property(cursor iprp, uint64_t id, property_fn fn, qvl_avif_item *item) {
    cursor ipco = find(iprp, "ipco"), ipma = find(iprp, "ipma");
    unsigned version = (unsigned)take(&ipma, 1), flags = (unsigned)take(&ipma, 3);
    uint64_t entries = take(&ipma, 4);
    int lookups = 0;
    for (uint64_t i = 0; i < entries && !ipma.dry; i++) {
        uint64_t owner = take(&ipma, version == 0 ? 2 : 4), count = take(&ipma, 1);
        for (uint64_t k = 0; k < count && !ipma.dry; k++) {
            uint64_t index = flags & 1 ? take(&ipma, 2) & 0x7fff : take(&ipma, 1) & 0x7f;
            if (owner != id || index == 0 || ++lookups > MAX_LOOKUPS) continue;
            cursor all = ipco;
            box b = {0};
            bool cut, found = true;
            for (uint64_t n = 0; n < index && found; n++) found = next_box(&all, &b, &cut);
            if (found) fn(&b, item);
        }
    }
}

/* Turning comes before mirroring, whatever the order of the boxes. */
static int orientation_of(const qvl_avif_item *item) {
    static const int values[4][3] = {{1, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}};
    return values[item->quarters][item->mirror];
}

static void take_property(const box *property, qvl_avif_item *item) {
    cursor c = property->body;
    if (is(property, "ispe")) {
        take_version(&c);
        item->width = (int64_t)take(&c, 4);
        item->height = (int64_t)take(&c, 4);
    } else if (is(property, "av1C") && c.left >= 4) {
        take(&c, 2);
        unsigned flags = (unsigned)take(&c, 1);
        bool deep = flags & 0x40, gray = flags & 0x10, half_width = flags & 8, half_height = flags & 4;
        item->quarter_bytes = (gray ? 4u : 4u + (8u >> (half_width + half_height))) << deep;
    } else if (is(property, "irot")) {
        item->quarters = (int)take(&c, 1) & 3;
    } else if (is(property, "imir")) {
        item->mirror = 1 + ((int)take(&c, 1) & 1);
    } else if (is(property, "colr") && c.left >= 11 && memcmp(c.at, "nclx", 4) == 0) {
        take(&c, 4);
        item->has_colour = true;
        item->primaries = (int)take(&c, 2);
        take(&c, 2); /* the transfer curve */
        item->matrix = (int)take(&c, 2);
        item->full_range = take(&c, 1) >> 7;
    }
}

static void take_alpha(const box *property, qvl_avif_item *item) {
    static const char mpeg[] = "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
                      hevc[] = "urn:mpeg:hevc:2015:auxid:1";
    if (!is(property, "auxC") || property->body.left < 4) return;
    const uint8_t *text = property->body.at + 4;
    size_t left = property->body.left - 4;
    if ((left >= sizeof mpeg && memcmp(text, mpeg, sizeof mpeg) == 0) ||
        (left >= sizeof hevc && memcmp(text, hevc, sizeof hevc) == 0))
        item->alpha = true;
}

/* Looks at every item that says it is auxiliary to this one. */
static void find_alpha(cursor iref, cursor iprp, uint64_t id, qvl_avif_item *item) {
    size_t id_bytes = take_version(&iref) == 0 ? 2 : 4;
    int lookups = 0;
    box b;
    bool cut;
    while (next_box(&iref, &b, &cut)) {
        if (!is(&b, "auxl") || ++lookups > MAX_LOOKUPS) continue;
        uint64_t from = take(&b.body, id_bytes), count = take(&b.body, 2);
        bool ours = false;
        for (uint64_t i = 0; i < count && !b.body.dry; i++) ours |= take(&b.body, id_bytes) == id;
        if (ours) for_each_property(iprp, from, take_alpha, item);
    }
}

/* ---- where its bytes are */

typedef struct sources {
    const uint8_t *file;
    size_t file_count;
    cursor idat;
} sources;

static const char *add_extent(qvl_avif_item *item, const sources *from, unsigned method, uint64_t offset,
                              uint64_t length) {
    const uint8_t *bytes = method == 0 ? from->file : from->idat.at;
    size_t count = method == 0 ? from->file_count : from->idat.left;
    if (method > 1) return "its data is kept in an unknown way";
    if (!bytes) return "its data is nowhere";
    if (item->extent_count == QVL_AVIF_MAX_EXTENTS) return "its data is in too many pieces";
    if (offset > count || length > count - offset) return "the file ends before the picture does";
    if (length == 0) length = count - offset;
    item->extents[item->extent_count++] = (qvl_avif_extent){bytes + offset, (size_t)length};
    return NULL;
}

/* Returns what is wrong, or NULL. */
static const char *find_extents(cursor iloc, const sources *from, uint64_t id, qvl_avif_item *item) {
    unsigned version = take_version(&iloc);
    uint64_t sizes = take(&iloc, 2);
    size_t offset_bytes = sizes >> 12 & 15, length_bytes = sizes >> 8 & 15, base_bytes = sizes >> 4 & 15;
    size_t index_bytes = version ? sizes & 15 : 0;
    if (version > 2 || offset_bytes > 8 || length_bytes > 8 || base_bytes > 8 || index_bytes > 8)
        return "its list of places is malformed";
    uint64_t items = take(&iloc, version < 2 ? 2 : 4);
    for (uint64_t i = 0; i < items && !iloc.dry; i++) {
        uint64_t owner = take(&iloc, version < 2 ? 2 : 4);
        unsigned method = version ? (unsigned)take(&iloc, 2) & 15 : 0;
        take(&iloc, 2); /* another file; there is none */
        uint64_t base = take(&iloc, base_bytes), extents = take(&iloc, 2);
        for (uint64_t k = 0; k < extents && !iloc.dry; k++) {
            take(&iloc, index_bytes);
            uint64_t offset = take(&iloc, offset_bytes), length = take(&iloc, length_bytes);
            if (owner != id || iloc.dry) continue;
            if (offset > UINT64_MAX - base) return "its list of places is malformed";
            const char *wrong = add_extent(item, from, method, base + offset, length);
            if (wrong) return wrong;
        }
    }
    return item->extent_count ? NULL : "its data is nowhere";
}

/* ---- the whole */

static bool find_meta(const uint8_t *bytes, size_t count, cursor *meta, bool *cut) {
    cursor file = {bytes, count, false};
    box b;
    while (next_box(&file, &b, cut)) {
        if (!is(&b, "meta")) continue;
        *meta = b.body;
        take_version(meta);
        return true;
    }
    return false;
}

qvl_status qvl_avif_main_item(const uint8_t *bytes, size_t count, const qvl_canvas *canvas, qvl_avif_item *item) {
    *item = (qvl_avif_item){0};
    cursor meta;
    bool cut;
    if (!find_meta(bytes, count, &meta, &cut)) {
        if (cut) return qvl_canvas_damaged(canvas, "AVIF", "the file ends before the picture does");
        return qvl_fail(canvas->error, QVL_ERROR_UNSUPPORTED,
                        "%.400s: AVIF without a still picture (a film only) is not supported", canvas->name);
    }
    cursor iprp = find(meta, "iprp");
    uint64_t id = main_id(find(meta, "pitm"));
    find_type(find(meta, "iinf"), id, item->type);
    for_each_property(iprp, id, take_property, item);
    item->orientation = orientation_of(item);
    find_alpha(find(meta, "iref"), iprp, id, item);
    if (!item->type[0] || item->width == 0 || item->height == 0)
        return qvl_canvas_damaged(canvas, "AVIF", "its main picture is not described");
    if (item->alpha) return qvl_canvas_unsupported(canvas, "AVIF with alpha");
    if (strcmp(item->type, "grid") == 0) return qvl_canvas_unsupported(canvas, "AVIF made of tiles");
    if (strcmp(item->type, "av01") != 0)
        return qvl_canvas_damaged(canvas, "AVIF", "its main picture is not coded as AV1");
    sources from = {bytes, count, find(meta, "idat")};
    const char *wrong = find_extents(find(meta, "iloc"), &from, id, item);
    return wrong && !canvas->probe ? qvl_canvas_damaged(canvas, "AVIF", wrong) : QVL_OK;
}
