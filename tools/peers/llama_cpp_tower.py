"""Times llama.cpp's vision tower (llama-cpp-python) beside qvl's, on the same sizes and threads, taking turns.

    CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON -DGGML_AVX512=ON
        -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON" pip install llama-cpp-python gguf
    python3 tools/peers/llama_cpp_tower.py [--qvl build/qvl] [--random-model build/random_model] [--threads 2]
        [--type F16|BF16|F32] [--runs 3] [SIZE ...]

Needs llama-cpp-python (built from source: there are no wheels), gguf and numpy. Both run the tower of Qwen3.5-27B (27
blocks of 1152) with random weights up to the features: qvl's own bench from patch rows, in f32 for F32 and else in
bf16, and mtmd_encode_chunk of a GGUF file that this program writes, from the normalised picture. Prints medians and the
median of the pairs' ratios.
"""

import ctypes
import functools
import tempfile
import time
from pathlib import Path

import gguf
import llama_cpp
import numpy
from llama_cpp import mtmd_cpp

import tower_pairs

DEPTH, WIDTH, HEADS, INNER, OUT, PATCH, MERGE, GRID = 27, 1152, 16, 4304, 5120, 16, 2, 48


class TowerFile:
    """A GGUF file of a tower with random weights."""

    def __init__(self, path, kind):
        self.writer = gguf.GGUFWriter(path, "clip")
        self.kind = getattr(gguf.GGMLQuantizationType, kind)
        self.random = numpy.random.default_rng(1)

    def matrix(self, name, rows, columns):
        values = self.random.standard_normal((rows, columns), dtype=numpy.float32) * columns**-0.5
        self.writer.add_tensor(name, gguf.quants.quantize(values, self.kind), raw_dtype=self.kind)

    def linear(self, name, rows, columns):
        self.matrix(name + ".weight", rows, columns)
        self.writer.add_tensor(name + ".bias", self.random.standard_normal(rows, dtype=numpy.float32) * 0.1)

    def norm(self, name):
        self.writer.add_tensor(name + ".weight", numpy.ones(WIDTH, numpy.float32))
        self.writer.add_tensor(name + ".bias", numpy.zeros(WIDTH, numpy.float32))

    def keys(self):
        for name, value in {"embedding_length": WIDTH, "attention.head_count": HEADS, "feed_forward_length": INNER,
                            "block_count": DEPTH, "projection_dim": OUT, "image_size": GRID * PATCH,
                            "patch_size": PATCH, "spatial_merge_size": MERGE}.items():
            self.writer.add_uint32("clip.vision." + name, value)
        self.writer.add_bool("clip.has_vision_encoder", True)
        self.writer.add_bool("clip.use_gelu", True)
        self.writer.add_string("clip.projector_type", "qwen3vl_merger")
        self.writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
        for name in "image_mean", "image_std":
            self.writer.add_array("clip.vision." + name, [0.5, 0.5, 0.5])

    def write(self):
        self.keys()
        for name in "v.patch_embd.weight", "v.patch_embd.weight.1":
            weights = self.random.standard_normal((WIDTH, 3, PATCH, PATCH), dtype=numpy.float32) * 0.02
            f16 = self.kind == gguf.GGMLQuantizationType.F16  # as llama.cpp's converter has it
            self.writer.add_tensor(name, weights.astype(numpy.float16) if f16 else weights)
        self.writer.add_tensor("v.patch_embd.bias", numpy.zeros(WIDTH, numpy.float32))
        table = self.random.standard_normal((GRID * GRID, WIDTH), dtype=numpy.float32) * 0.02
        self.writer.add_tensor("v.position_embd.weight", table)
        for block in range(DEPTH):
            name = f"v.blk.{block}."
            self.norm(name + "ln1")
            self.norm(name + "ln2")
            self.linear(name + "attn_qkv", 3 * WIDTH, WIDTH)
            self.linear(name + "attn_out", WIDTH, WIDTH)
            self.linear(name + "ffn_up", INNER, WIDTH)
            self.linear(name + "ffn_down", WIDTH, INNER)
        self.norm("v.post_ln")
        self.linear("mm.0", MERGE * MERGE * WIDTH, MERGE * MERGE * WIDTH)
        self.linear("mm.2", OUT, MERGE * MERGE * WIDTH)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def write_vocabulary(path):
    """What the marks around a picture are looked up in: bytes and the two marks, no weights."""
    writer = gguf.GGUFWriter(path, "llama")
    tokens = [b"<unk>", b"<s>", b"</s>", b"<|vision_start|>", b"<|vision_end|>"]
    kinds = [gguf.TokenType.UNKNOWN] + 4 * [gguf.TokenType.CONTROL] + 256 * [gguf.TokenType.BYTE]
    tokens += [b"<0x%02X>" % byte for byte in range(256)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Tower:
    def __init__(self, kind, threads):
        self.silence = llama_cpp.llama_log_callback(lambda level, text, user: None)
        llama_cpp.llama_log_set(self.silence, ctypes.c_void_p(0))
        mtmd_cpp.mtmd_log_set(self.silence, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        with tempfile.TemporaryDirectory() as folder:
            self.open(Path(folder) / "tower.gguf", Path(folder) / "vocabulary.gguf", kind, threads)

    def open(self, tower, vocabulary, kind, threads):
        TowerFile(tower, kind).write()
        write_vocabulary(vocabulary)
        options = llama_cpp.llama_model_default_params()
        options.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(bytes(vocabulary), options)
        options = mtmd_cpp.mtmd_context_params_default()
        options.use_gpu, options.n_threads, options.warmup, options.print_timings = False, threads, False, False
        self.context = mtmd_cpp.mtmd_init_from_file(bytes(tower), self.model, options)
        if not self.context:
            raise SystemExit("llama.cpp does not read the tower that was written")

    def chunk(self, side):
        pixels = numpy.random.default_rng(2).integers(0, 256, (side, side, 3), numpy.uint8)
        data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        picture = mtmd_cpp.mtmd_bitmap_init(side, side, data)
        mark = mtmd_cpp.mtmd_default_marker()
        text = mtmd_cpp.mtmd_input_text(mark, len(mark), False, True)
        self.chunks = mtmd_cpp.mtmd_input_chunks_init()
        pictures = (mtmd_cpp.mtmd_bitmap_p_ctypes * 1)(picture)
        if mtmd_cpp.mtmd_tokenize(self.context, self.chunks, ctypes.byref(text), pictures, 1):
            raise SystemExit("llama.cpp does not take the picture")
        for i in range(mtmd_cpp.mtmd_input_chunks_size(self.chunks)):
            chunk = mtmd_cpp.mtmd_input_chunks_get(self.chunks, i)
            if mtmd_cpp.mtmd_input_chunk_get_type(chunk) == mtmd_cpp.MTMD_INPUT_CHUNK_TYPE_IMAGE:
                tokens, wanted = mtmd_cpp.mtmd_input_chunk_get_n_tokens(chunk), (side // PATCH // MERGE) ** 2
                if tokens != wanted:
                    raise SystemExit(f"llama.cpp makes {tokens} tokens of {side}x{side}, qvl {wanted}")
                return chunk
        raise SystemExit("llama.cpp made no chunk of the picture")

    def seconds(self, chunk):
        start = time.perf_counter()
        if mtmd_cpp.mtmd_encode_chunk(self.context, chunk):
            raise SystemExit("llama.cpp could not encode the picture")
        return time.perf_counter() - start


def main():
    parser = tower_pairs.parser(__doc__)
    parser.add_argument("--type", choices=["F16", "BF16", "F32"], default="F16")
    arguments = parser.parse_args()
    tower = Tower(arguments.type, arguments.threads)
    dtype = "f32" if arguments.type == "F32" else "bf16"
    print(f"llama-cpp-python {llama_cpp.__version__}, {arguments.type} weights, qvl in {dtype}, "
          f"{arguments.threads} threads")
    tower_pairs.compare("llama.cpp", lambda side: functools.partial(tower.seconds, tower.chunk(side)), arguments, dtype)


if __name__ == "__main__":
    main()
