#define _DEFAULT_SOURCE /* mkstemp */
#include "media/clips.h"

#include "base/file.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>

#include <unistd.h>

enum { BLOCKS = 4, LIGHT = 200, DARK = 50 };

#define CHECK(call)                                                                                               \
    do {                                                                                                          \
        int code_ = (call);                                                                                       \
        if (code_ < 0) fail_msg("%s: %s", #call, av_err2str(code_));                                              \
    } while (0)

/* ---- drawing */

/* Y, U and V of a block, of 8 bits. */
static void block_colour(int block, int number, int yuv[3]) {
    static const int corners[4][3] = {{80, 90, 240}, {145, 54, 34}, {41, 240, 110}, {230, 128, 128}};
    static const int which[16] = {1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 4};
    if (which[block]) {
        memcpy(yuv, corners[which[block] - 1], 3 * sizeof *yuv);
        return;
    }
    int bit = block < 3 ? block - 1 : block < 12 ? block - 2 : block - 3;
    yuv[0] = number >> bit & 1 ? LIGHT : DARK;
    yuv[1] = yuv[2] = 128;
}

/* The values of channel c, which is RGB's for formats of that kind. */
static int channel_value(const AVPixFmtDescriptor *d, const int yuv[3], int c) {
    if (!(d->flags & AV_PIX_FMT_FLAG_RGB)) return c < 3 ? yuv[c] : 255;
    int y = yuv[0], u = yuv[1] - 128, v = yuv[2] - 128;
    int rgb[4] = {y + v * 14 / 10, y - u * 34 / 100 - v * 71 / 100, y + u * 177 / 100, 255};
    return rgb[c] < 0 ? 0 : rgb[c] > 255 ? 255 : rgb[c];
}

static void draw(AVFrame *frame, int number) {
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);
    for (int c = 0; c < d->nb_components; c++) {
        const AVComponentDescriptor *component = &d->comp[c];
        bool chroma = (c == 1 || c == 2) && !(d->flags & AV_PIX_FMT_FLAG_RGB);
        int width = chroma ? AV_CEIL_RSHIFT(frame->width, d->log2_chroma_w) : frame->width;
        int height = chroma ? AV_CEIL_RSHIFT(frame->height, d->log2_chroma_h) : frame->height;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int yuv[3];
                block_colour(y * BLOCKS / height * BLOCKS + x * BLOCKS / width, number, yuv);
                int value = channel_value(d, yuv, c) << (component->depth - 8) << component->shift;
                uint8_t *at = frame->data[component->plane] + y * frame->linesize[component->plane] +
                              x * component->step + component->offset;
                at[0] = (uint8_t)value;
                if (component->depth > 8) at[1] = (uint8_t)(value >> 8);
            }
    }
}

/* ---- reading what was drawn */

/* The mean colour in the middle of a block. */
static void block_mean(const qvl_image *image, int column, int row, int rgb[3]) {
    int64_t x0 = image->width * (4 * column + 1) / 16, x1 = image->width * (4 * column + 3) / 16;
    int64_t y0 = image->height * (4 * row + 1) / 16, y1 = image->height * (4 * row + 3) / 16;
    int64_t sums[3] = {0};
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            for (int c = 0; c < 3; c++) sums[c] += image->pixels[3 * (y * image->width + x) + c];
    for (int c = 0; c < 3; c++) rgb[c] = (int)(sums[c] / ((x1 - x0) * (y1 - y0)));
}

int seen_number(const qvl_image *image) {
    int number = 0, bit = 0;
    for (int block = 0; block < BLOCKS * BLOCKS; block++) {
        int rgb[3];
        if (block == 0 || block == 3 || block == 12 || block == 15) continue;
        block_mean(image, block % BLOCKS, block / BLOCKS, rgb);
        number |= (rgb[1] > 120) << bit++;
    }
    return number;
}

corner seen_corner(const qvl_image *image, int which) {
    int rgb[3];
    block_mean(image, which % 2 ? 3 : 0, which / 2 ? 3 : 0, rgb);
    bool light[3];
    for (int c = 0; c < 3; c++) light[c] = rgb[c] > 120;
    if (light[0] && light[1] && light[2]) return CORNER_WHITE;
    if (light[0] && !light[1] && !light[2]) return CORNER_RED;
    if (!light[0] && light[1] && !light[2]) return CORNER_GREEN;
    if (!light[0] && !light[1] && light[2]) return CORNER_BLUE;
    return CORNER_OTHER;
}

/* ---- coding and muxing */

typedef struct maker {
    clip_spec spec;
    AVFormatContext *format;
    AVCodecContext *codec;
    AVStream *video, *audio;
    AVPacket **packets; /* the coded frames */
    int packet_count;
} maker;

static void open_encoder(maker *m) {
    const clip_spec *spec = &m->spec;
    const AVCodec *codec = avcodec_find_encoder_by_name(spec->encoder);
    if (!codec) fail_msg("this FFmpeg cannot encode %s", spec->encoder);
    AVCodecContext *c = m->codec = avcodec_alloc_context3(codec);
    assert_non_null(c);
    c->width = spec->width;
    c->height = spec->height;
    c->pix_fmt = spec->format;
    c->time_base = spec->times ? (AVRational){1, 1000} : av_inv_q(spec->rate);
    c->framerate = spec->rate;
    c->gop_size = spec->gop;
    c->thread_count = 1;
    c->bit_rate = 2000000;
    if (m->format->oformat->flags & AVFMT_GLOBALHEADER) c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    AVDictionary *options = NULL;
    if (spec->options) CHECK(av_dict_parse_string(&options, spec->options, "=", ":", 0));
    CHECK(avcodec_open2(c, codec, &options));
    if (av_dict_count(options)) fail_msg("%s does not know an option of %s", spec->encoder, spec->options);
    av_dict_free(&options);
}

/* NULL: the end. */
static void encode(maker *m, const AVFrame *frame) {
    CHECK(avcodec_send_frame(m->codec, frame));
    for (;;) {
        AVPacket *packet = av_packet_alloc();
        int code = avcodec_receive_packet(m->codec, packet);
        if (code < 0) {
            assert_true(code == AVERROR(EAGAIN) || code == AVERROR_EOF);
            av_packet_free(&packet);
            return;
        }
        m->packets = realloc(m->packets, sizeof *m->packets * (size_t)(m->packet_count + 1));
        assert_non_null(m->packets);
        m->packets[m->packet_count++] = packet;
    }
}

static void encode_all(maker *m) {
    const clip_spec *spec = &m->spec;
    AVFrame *frame = av_frame_alloc();
    frame->width = spec->width;
    frame->height = spec->height;
    frame->format = spec->format;
    CHECK(av_frame_get_buffer(frame, 0));
    for (int i = 0; i < spec->frames; i++) {
        CHECK(av_frame_make_writable(frame));
        draw(frame, spec->still ? 0 : i);
        frame->pts = spec->times ? spec->times[i] : spec->first + i;
        encode(m, frame);
    }
    encode(m, NULL);
    av_frame_free(&frame);
}

static AVStream *add_video(maker *m) {
    AVStream *stream = avformat_new_stream(m->format, NULL);
    assert_non_null(stream);
    CHECK(avcodec_parameters_from_context(stream->codecpar, m->codec));
    stream->time_base = m->codec->time_base;
    if (!m->spec.times) stream->avg_frame_rate = m->spec.rate;
    return stream;
}

static AVStream *add_silence(maker *m) {
    AVStream *stream = avformat_new_stream(m->format, NULL);
    assert_non_null(stream);
    AVCodecParameters *p = stream->codecpar;
    p->codec_type = AVMEDIA_TYPE_AUDIO;
    p->codec_id = AV_CODEC_ID_PCM_S16LE;
    p->format = AV_SAMPLE_FMT_S16;
    p->sample_rate = 8000;
    p->bits_per_coded_sample = 16;
    p->block_align = 2;
    av_channel_layout_default(&p->ch_layout, 1);
    stream->time_base = (AVRational){1, 8000};
    return stream;
}

/* The same packet for both: its bytes mean nothing. */
static void write_other(maker *m, AVStream *stream, int size) {
    AVPacket *packet = av_packet_alloc();
    CHECK(av_new_packet(packet, size));
    memset(packet->data, 0, (size_t)size);
    packet->stream_index = stream->index;
    packet->pts = packet->dts = 0;
    packet->flags = AV_PKT_FLAG_KEY;
    CHECK(av_interleaved_write_frame(m->format, packet));
    av_packet_free(&packet);
}

static void write_packets(maker *m) {
    AVPacket *copy = av_packet_alloc();
    int64_t length = m->spec.frames;
    for (int round = 0; round < m->spec.repeat; round++)
        for (int i = 0; i < m->packet_count; i++) {
            CHECK(av_packet_ref(copy, m->packets[i]));
            copy->pts += round * length;
            copy->dts += round * length;
            copy->duration = m->spec.times ? 40 : 1;
            copy->stream_index = m->video->index;
            av_packet_rescale_ts(copy, m->codec->time_base, m->video->time_base);
            CHECK(av_interleaved_write_frame(m->format, copy));
        }
    av_packet_free(&copy);
}

static void mux(maker *m) {
    const clip_spec *spec = &m->spec;
    if (!spec->no_video) m->video = add_video(m);
    if (spec->audio) m->audio = add_silence(m);
    if (spec->matrix) {
        uint8_t *data = av_stream_new_side_data(m->video, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
        assert_non_null(data);
        memcpy(data, spec->matrix, 9 * sizeof(int32_t));
    }
    AVDictionary *options = NULL;
    if (spec->muxer_options) CHECK(av_dict_parse_string(&options, spec->muxer_options, "=", ":", 0));
    CHECK(avformat_write_header(m->format, &options));
    av_dict_free(&options);
    if (m->audio) write_other(m, m->audio, 1600);
    if (m->video) write_packets(m);
    CHECK(av_write_trailer(m->format));
}

static clip_spec with_defaults(const clip_spec *given) {
    clip_spec spec = *given;
    if (!spec.muxer) spec.muxer = "matroska";
    if (!spec.encoder) spec.encoder = "libx264";
    if (!spec.options && strcmp(spec.encoder, "libx264") == 0) spec.options = "preset=veryfast:bf=3:b_strategy=0";
    if (!spec.width) spec.width = 64;
    if (!spec.height) spec.height = 48;
    if (!spec.rate.num) spec.rate = (AVRational){25, 1};
    if (!spec.gop) spec.gop = 12;
    if (!spec.repeat) spec.repeat = 1;
    return spec;
}

static char *new_name(void) {
    char name[] = "/tmp/qvl-clip-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    char *path = strdup(name);
    assert_non_null(path);
    return path;
}

char *write_clip(const bytes *clip) {
    char *path = new_name();
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(clip->data, 1, clip->count, file), clip->count);
    assert_int_equal(fclose(file), 0);
    return path;
}

bytes make_clip(const clip_spec *spec) {
    maker m = {.spec = with_defaults(spec)};
    char *path = new_name();
    int level = av_log_get_level();
    av_log_set_level(AV_LOG_ERROR);
    CHECK(avformat_alloc_output_context2(&m.format, NULL, m.spec.muxer, path));
    CHECK(avio_open(&m.format->pb, path, AVIO_FLAG_WRITE));
    open_encoder(&m);
    encode_all(&m);
    mux(&m);
    CHECK(avio_closep(&m.format->pb));
    for (int i = 0; i < m.packet_count; i++) av_packet_free(&m.packets[i]);
    free(m.packets);
    avcodec_free_context(&m.codec);
    avformat_free_context(m.format);
    av_log_set_level(level);
    bytes clip;
    qvl_error error;
    if (qvl_file_read(path, (size_t)1 << 30, &clip.data, &clip.count, &error)) fail_msg("%s", error.message);
    unlink(path);
    free(path);
    return clip;
}

/* ---- opening */

static void take_note(const char *message, void *user) {
    notes *n = user;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", message);
}

static qvl_input input_of(const bytes *clip) {
    return (qvl_input){
        .kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = clip->data, .byte_count = clip->count};
}

qvl_video *open_clip(const bytes *clip, const qvl_media_options *options, notes *taken) {
    qvl_input input = input_of(clip);
    qvl_video *video;
    qvl_error error;
    if (qvl_video_open(&input, options, taken ? take_note : NULL, taken, NULL, &video, &error))
        fail_msg("%s", error.message);
    return video;
}

qvl_image frame_of(qvl_video *video, int64_t frame) {
    qvl_image image;
    qvl_error error;
    if (qvl_video_frame(video, frame, &image, &error)) fail_msg("frame %d: %s", (int)frame, error.message);
    return image;
}

void refuse_clip(const bytes *clip, const qvl_media_options *options, qvl_status status, const char *part) {
    qvl_input input = input_of(clip);
    qvl_video *video = (qvl_video *)(uintptr_t)1;
    qvl_error error = {0};
    assert_int_equal(qvl_video_open(&input, options, NULL, NULL, NULL, &video, &error), status);
    assert_null(video);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, "the-name") || !strstr(error.message, part))
        fail_msg("no \"%s\" in: %s", part, error.message);
}
