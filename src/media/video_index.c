#include "media/video_index.h"

#include "base/memory.h"

#include <libavcodec/codec_desc.h>

#include <stdlib.h>
#include <string.h>

/* 92 hours at 30 frames a second. */
#define MAX_PACKETS 10000000

/* After so many patience is asked. */
enum { PACKETS_A_QUESTION = 256 };

/* ---- arrays that grow */

/* The array with room for one more after count elements of `size` bytes, or NULL: it is then as it was. */
static void *make_room(void *array, int64_t count, int64_t *capacity, size_t size) {
    if (count < *capacity) return array;
    int64_t larger = *capacity ? 2 * *capacity : 256;
    void *grown = qvl_alloc((size_t)larger, size);
    if (!grown) return NULL;
    if (count) memcpy(grown, array, (size_t)count * size);
    qvl_free(array);
    *capacity = larger;
    return grown;
}

bool qvl_numbers_push(qvl_numbers *numbers, int64_t value) {
    int64_t *values = make_room(numbers->values, numbers->count, &numbers->capacity, sizeof *values);
    if (!values) return false;
    numbers->values = values;
    values[numbers->count++] = value;
    return true;
}

static bool push_key(qvl_video_index *index, const AVPacket *packet, int64_t number) {
    qvl_video_key *keys = make_room(index->keys, index->key_count, &index->key_capacity, sizeof *keys);
    if (!keys) return false;
    index->keys = keys;
    keys[index->key_count++] = (qvl_video_key){packet->pts, packet->dts, -1, number};
    return true;
}

/* ---- what a packet is */

/* Codecs of which a packet makes one frame, in whatever order. */
static bool is_frame_per_packet(enum AVCodecID codec) {
    static const enum AVCodecID known[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC,       AV_CODEC_ID_VP8,
                                           AV_CODEC_ID_VP9,  AV_CODEC_ID_AV1,        AV_CODEC_ID_MPEG4,
                                           AV_CODEC_ID_GIF,  AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (codec == known[i]) return true;
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get(codec);
    return descriptor && descriptor->props & AV_CODEC_PROP_INTRA_ONLY;
}

/* A frame of VP8 or VP9 that is only there to be referred to. */
static bool is_hidden(enum AVCodecID codec, const AVPacket *packet) {
    unsigned first = packet->data[0], last = packet->data[packet->size - 1];
    if (codec == AV_CODEC_ID_VP8) return !(first & 0x10);
    if (codec != AV_CODEC_ID_VP9 || (last & 0xe0) == 0xc0) return false; /* several frames, of which one shows */
    unsigned bits = first << 4 & 0xff;                                   /* behind the marker and the profile */
    if ((first & 0x30) == 0x30) bits = bits << 1 & 0xff;
    bool shows_other = bits & 0x80, shows = bits & 0x20;
    return !shows_other && !shows;
}

/* The type of a unit of H.264 from which decoding restarts with nothing before it. */
enum { NAL_IDR = 5 };

static bool has_idr(const AVCodecParameters *codec, const AVPacket *packet) {
    const uint8_t *p = packet->data, *end = p + packet->size;
    bool lengths = codec->extradata_size >= 7 && codec->extradata[0] == 1;
    if (lengths) {
        int size = (codec->extradata[4] & 3) + 1;
        while (end - p > size) {
            size_t length = 0;
            for (int i = 0; i < size; i++) length = length << 8 | p[i];
            p += size;
            if ((p[0] & 0x1f) == NAL_IDR) return true;
            if (length > (size_t)(end - p)) return false;
            p += length;
        }
        return false;
    }
    for (; end - p >= 4; p++)
        if (p[0] == 0 && p[1] == 0 && p[2] == 1 && (p[3] & 0x1f) == NAL_IDR) return true;
    return false;
}

/* Whether frames from here on need nothing from before. H.264 marks more than that as key frames. */
static bool is_restart(const AVCodecParameters *codec, const AVPacket *packet) {
    return packet->flags & AV_PKT_FLAG_KEY && (codec->codec_id != AV_CODEC_ID_H264 || has_idr(codec, packet));
}

/* ---- reading */

static bool note_packet(const AVCodecParameters *codec, const AVPacket *packet, int64_t number,
                        qvl_video_index *index) {
    /* FFmpeg's decoders give nothing for frames before the first key frame, but for HEVC's. */
    bool key = packet->flags & AV_PKT_FLAG_KEY;
    if (codec->codec_id == AV_CODEC_ID_HEVC && index->key_count == 0 && key) index->first_packet = number;
    if (is_restart(codec, packet) && !push_key(index, packet, number)) return false;
    if (packet->flags & AV_PKT_FLAG_DISCARD) {
        index->discarded++;
        return true;
    }
    if (is_hidden(codec->codec_id, packet)) return true;
    /* Of what is shown before the first key frame, in the file or in time, decoding may give nothing. */
    if (!qvl_is_video_time(packet->pts)) {
        index->sure = false;
        return true;
    }
    if (index->key_count == 0 || packet->pts < index->keys[0].time) index->sure = false;
    int64_t end = packet->pts + (qvl_is_video_time(packet->duration) ? packet->duration : 0);
    if (end > index->end) index->end = end;
    if (packet->flags & AV_PKT_FLAG_CORRUPT && !qvl_numbers_push(&index->broken, packet->pts)) return false;
    return qvl_numbers_push(&index->times, packet->pts);
}

/* A packet that the end of the file cuts is no frame. */
static void drop_cut_packet(qvl_video_index *index) {
    qvl_numbers *times = &index->times, *broken = &index->broken;
    if (!times->count || !broken->count) return;
    if (times->values[times->count - 1] != broken->values[broken->count - 1]) return;
    times->count--;
    broken->count--;
    index->packet_count--;
    index->cut = true;
}

qvl_status qvl_video_ask(const qvl_patience *patience, const char *name, qvl_error *error) {
    if (!patience || patience->go_on(patience->user)) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_CANCELLED, "%.400s: reading was cancelled", name);
}

qvl_status qvl_video_index_read(qvl_video_source *source, const qvl_patience *patience, qvl_video_index *index,
                                qvl_error *error) {
    const AVCodecParameters *codec = source->stream->codecpar;
    *index = (qvl_video_index){.end = INT64_MIN};
    index->sure = is_frame_per_packet(codec->codec_id) &&
                  (codec->field_order == AV_FIELD_UNKNOWN || codec->field_order == AV_FIELD_PROGRESSIVE);
    AVPacket *packet = av_packet_alloc();
    bool memory = packet != NULL;
    int code = 0, flags = 0;
    qvl_status status = QVL_OK;
    while (memory && index->packet_count < MAX_PACKETS) {
        if (index->packet_count % PACKETS_A_QUESTION == 0) status = qvl_video_ask(patience, source->name, error);
        if (status) break;
        code = qvl_video_source_read(source, packet);
        if (code < 0) break;
        flags = packet->flags;
        memory = note_packet(codec, packet, index->packet_count++, index);
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    if (status) return status;
    if (!memory || code == AVERROR(ENOMEM))
        return qvl_fail(error, QVL_ERROR_MEMORY, "%.400s: out of memory for the times of %lld frames",
                        source->name, (long long)index->packet_count);
    if (index->packet_count >= MAX_PACKETS)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "%.400s: the video has %d packets or more; the limit is below that", source->name,
                        MAX_PACKETS);
    if (flags & AV_PKT_FLAG_CORRUPT) drop_cut_packet(index);
    index->cut = index->cut || (code < 0 && code != AVERROR_EOF);
    return QVL_OK;
}

/* ---- looking up */

static int compare(const void *a, const void *b) {
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static int64_t find(const qvl_numbers *numbers, int64_t value) {
    if (!numbers->count) return -1;
    const int64_t *at = bsearch(&value, numbers->values, (size_t)numbers->count, sizeof value, compare);
    return at ? at - numbers->values : -1;
}

int64_t qvl_video_index_find(const qvl_video_index *index, int64_t time) {
    return find(&index->times, time);
}

bool qvl_video_index_is_broken(const qvl_video_index *index, int64_t time) {
    return find(&index->broken, time) >= 0;
}

/* Keys whose frame is not shown go; the others come in order of their frames. */
static void number_keys(qvl_video_index *index) {
    qvl_video_key *keys = index->keys;
    int64_t kept = 0;
    for (int64_t i = 0; i < index->key_count; i++) {
        qvl_video_key key = keys[i];
        key.frame = qvl_video_index_find(index, key.time);
        if (key.frame >= 0 && (kept == 0 || keys[kept - 1].frame < key.frame)) keys[kept++] = key;
    }
    index->key_count = kept;
}

static void sort(qvl_numbers *numbers) {
    if (numbers->count) qsort(numbers->values, (size_t)numbers->count, sizeof *numbers->values, compare);
}

bool qvl_video_index_sort(qvl_video_index *index) {
    sort(&index->times);
    sort(&index->broken);
    number_keys(index);
    for (int64_t i = 1; i < index->times.count; i++)
        if (index->times.values[i] == index->times.values[i - 1]) return false;
    return true;
}

const qvl_video_key *qvl_video_index_key(const qvl_video_index *index, int64_t frame) {
    const qvl_video_key *found = NULL;
    for (int64_t low = 0, high = index->key_count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (index->keys[middle].frame <= frame) {
            found = &index->keys[middle];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found;
}

void qvl_video_index_free(qvl_video_index *index) {
    qvl_free(index->times.values);
    qvl_free(index->broken.values);
    qvl_free(index->keys);
    *index = (qvl_video_index){0};
}
