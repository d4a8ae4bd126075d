/* The shortest useful program: a picture and a model folder in, features out.
 *
 *   cc encode.c $(pkg-config --cflags --libs qvl) -o encode
 *   ./encode MODEL_FOLDER PICTURE
 */
#include <qvl.h>
#include <stdio.h>

static int refuse(const qvl_error *error) {
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: encode MODEL_FOLDER PICTURE\n");
        return 2;
    }
    qvl_error error;
    qvl_model *model;
    if (qvl_model_open(argv[1], NULL, &model, &error)) return refuse(&error);

    qvl_session *session = NULL;
    qvl_features features = {0};
    qvl_input picture = {.kind = QVL_INPUT_FILE, .name = argv[2]};
    qvl_status status = qvl_session_open(model, &session, &error);
    if (!status) status = qvl_encode(session, &picture, 1, NULL, NULL, &features, &error);

    if (!status) {
        const qvl_item *item = &features.items[0];
        printf("%lldx%lld pixels, shown as %lldx%lld: grid %lldx%lldx%lld, %lld tokens of %lld values\n",
               (long long)item->source_width, (long long)item->source_height, (long long)item->width,
               (long long)item->height, (long long)item->grid.t, (long long)item->grid.h, (long long)item->grid.w,
               (long long)features.tokens, (long long)features.width);
    }
    int code = status ? refuse(&error) : 0;
    qvl_features_free(&features);
    qvl_session_close(&session);
    qvl_model_close(&model);
    return code;
}
