#include "media/video_decoder.h"

#include "base/pool.h"

#include <limits.h>
#include <string.h>

/* Each thread holds frames of its own, and decodes them one behind the other: more of them cost memory. */
enum { MAX_THREADS = 4 };

/* Errors in a row without a frame, at the end where no packet can be passed over any more. */
enum { MAX_ERRORS = 64 };

/* Codecs whose decoders were seen to leave frames out without a trace in the others. */
static bool can_skip(enum AVCodecID codec) {
    return codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_MPEG4 || codec == AV_CODEC_ID_MPEG2VIDEO;
}

static qvl_status fail_memory(const qvl_video_decoder *decoder, qvl_error *error) {
    return qvl_fail(error, QVL_ERROR_MEMORY, "%.400s: out of memory in decoding frames of %d x %d",
                    decoder->source->name, decoder->source->stream->codecpar->width,
                    decoder->source->stream->codecpar->height);
}

qvl_status qvl_video_decoder_open(qvl_video_source *source, const qvl_video_index *index, int64_t max_pixels,
                                  qvl_video_decoder *decoder, qvl_error *error) {
    const AVCodecParameters *parameters = source->stream->codecpar;
    *decoder = (qvl_video_decoder){.source = source, .index = index, .can_skip = can_skip(parameters->codec_id)};
    const AVCodec *codec = avcodec_find_decoder(parameters->codec_id);
    if (!codec)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%.400s: this FFmpeg has no decoder for %s", source->name,
                        avcodec_get_name(parameters->codec_id));
    decoder->packet = av_packet_alloc();
    decoder->context = avcodec_alloc_context3(codec);
    AVCodecContext *context = decoder->context;
    if (!decoder->packet || !context) return fail_memory(decoder, error);
    int code = avcodec_parameters_to_context(context, parameters);
    if (code >= 0) {
        int processors = qvl_online_processors();
        context->log_level_offset = QVL_FFMPEG_SILENT;
        context->thread_count = processors < MAX_THREADS ? processors : MAX_THREADS;
        context->pkt_timebase = source->stream->time_base;
        context->max_pixels = max_pixels;
        code = avcodec_open2(context, codec, NULL);
    }
    if (code == AVERROR(ENOMEM)) return fail_memory(decoder, error);
    if (code < 0)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%.400s: damaged video: the header of its %s stream cannot be read", source->name,
                        codec->name);
    return QVL_OK;
}

void qvl_video_decoder_close(qvl_video_decoder *decoder) {
    avcodec_free_context(&decoder->context);
    av_packet_free(&decoder->packet);
    *decoder = (qvl_video_decoder){0};
}

void qvl_video_decoder_restart(qvl_video_decoder *decoder) {
    avcodec_flush_buffers(decoder->context);
    av_packet_unref(decoder->packet);
    decoder->pending = decoder->draining = false;
    decoder->number = 0;
}

/* Hands over a packet, or says that there are no more. Negative: that packet is bad. */
static int feed(qvl_video_decoder *decoder, int64_t wanted) {
    AVPacket *packet = decoder->packet;
    while (!decoder->pending && decoder->number < decoder->index->packet_count &&
           qvl_video_source_read(decoder->source, packet) == 0) {
        decoder->pending = decoder->number >= decoder->index->first_packet;
        if (decoder->pending) break;
        decoder->number++;
        av_packet_unref(packet);
    }
    if (!decoder->pending) {
        decoder->draining = true;
        return avcodec_send_packet(decoder->context, NULL);
    }
    bool spare = decoder->can_skip && packet->pts != AV_NOPTS_VALUE && packet->pts < wanted;
    decoder->context->skip_frame = spare ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    int code = avcodec_send_packet(decoder->context, packet);
    if (code == AVERROR(EAGAIN)) return 0;
    decoder->pending = false;
    decoder->number++;
    av_packet_unref(packet);
    return code;
}

qvl_status qvl_video_decoder_next(qvl_video_decoder *decoder, int64_t wanted, AVFrame *frame, bool *found,
                                  qvl_error *error) {
    *found = false;
    for (int errors = 0; errors < MAX_ERRORS;) {
        int code = avcodec_receive_frame(decoder->context, frame);
        *found = code >= 0;
        if (code >= 0 || code == AVERROR_EOF) return QVL_OK;
        bool hungry = code == AVERROR(EAGAIN);
        if (!hungry) decoder->failed++;
        if (!decoder->draining) {
            int fed = feed(decoder, wanted);
            if (fed < 0 && fed != AVERROR_EOF) decoder->failed++;
            if (fed == AVERROR(ENOMEM)) code = fed;
        } else {
            errors++;
        }
        if (code == AVERROR(ENOMEM)) return fail_memory(decoder, error);
    }
    return QVL_OK;
}

/* ---- jumping ahead */

/* Matroska's index holds times of presentation, the others' those of decoding. */
static int64_t time_in_container(const AVFormatContext *format, const qvl_video_key *key) {
    bool presentation = strncmp(format->iformat->name, "matroska", 8) == 0 || key->dts == AV_NOPTS_VALUE;
    return presentation ? key->time : key->dts;
}

bool qvl_video_decoder_jump(qvl_video_decoder *decoder, const qvl_video_key *key) {
    AVFormatContext *format = decoder->source->format;
    AVPacket *packet = decoder->packet;
    qvl_video_decoder_restart(decoder);
    int64_t time = time_in_container(format, key);
    decoder->source->tells_size = true;
    int code = av_seek_frame(format, decoder->source->stream->index, time, AVSEEK_FLAG_BACKWARD);
    decoder->source->tells_size = false;
    if (code < 0) return false;
    /* The demuxer comes out before the key, or at it. A later key says that it is behind. */
    while (qvl_video_source_read(decoder->source, packet) == 0) {
        if (packet->pts == key->time && packet->flags & AV_PKT_FLAG_KEY) {
            decoder->pending = true;
            decoder->number = key->packet;
            return true;
        }
        bool behind = packet->flags & AV_PKT_FLAG_KEY && packet->pts > key->time;
        av_packet_unref(packet);
        if (behind) break;
    }
    return false;
}
