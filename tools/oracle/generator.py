"""Deterministic weights and inputs: a tensor's name gives its values.

The same rules are written in C in tools/random_model; generator_oracle.py compares the two bit for bit.

u(name, shape): a hash of (name, flat index), in [-1, 1), a multiple of 2^-23 and so exact in float32.

Two ways to make weights of u, computed in float64 and rounded to float32 once; bfloat16 is that float32 rounded to
nearest even:

    quarter  0.25 u; norm weights 1 + 0.25 u, except the zero-centred text norms of the qwen3_5 family, which stay
             0.25 u. What the tiny models' vectors use.
    scaled   matrices u sqrt(3 / fan_in), fan_in = product of every dimension but the first; biases 0.1 u; norm weights
             as above; A_log -3 + 3 u, so that heads remember for one to a few hundred tokens; embedding tables and the
             remaining vectors 0.25 u. For larger shapes, where quarter would make attention one-hot.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

PREFIX = "model.visual."


def _published(depth, hidden, heads, intermediate, out, deepstack):
    return dict(depth=depth, hidden_size=hidden, num_heads=heads, intermediate_size=intermediate, patch_size=16,
                temporal_patch_size=2, spatial_merge_size=2, in_channels=3, num_position_embeddings=2304,
                out_hidden_size=out, deepstack_visual_indexes=deepstack)


def _tiny(depth, deepstack):
    return dict(depth=depth, hidden_size=32, num_heads=2, intermediate_size=48, patch_size=4, temporal_patch_size=2,
                spatial_merge_size=2, in_channels=3, num_position_embeddings=36, out_hidden_size=24,
                deepstack_visual_indexes=deepstack)


# name -> (model_type, vision_config). The names are those of random_model --shape.
SHAPES = {
    "tiny-vl": ("qwen3_vl", _tiny(3, [0, 2])),
    "tiny-35": ("qwen3_5", _tiny(3, [])),
    "tiny-vlmoe": ("qwen3_vl_moe", _tiny(2, [0, 1])),
    "tiny-35moe": ("qwen3_5_moe", _tiny(2, [])),
    "demo": ("qwen3_vl", dict(_published(4, 64, 2, 128, 64, [0, 2]), num_position_embeddings=576)),
    "demo-35": ("qwen3_5", dict(_published(4, 64, 2, 128, 64, []), num_position_embeddings=576)),
    "mid-35": ("qwen3_5", dict(_published(4, 64, 2, 128, 256, []), num_position_embeddings=576)),
    "mid-35moe": ("qwen3_5_moe", dict(_published(4, 64, 2, 128, 256, []), num_position_embeddings=576)),
    "qwen3.5-0.8b": ("qwen3_5", _published(12, 768, 12, 3072, 1024, [])),
    "qwen3-vl-2b": ("qwen3_vl", _published(24, 1024, 16, 4096, 2048, [5, 11, 17])),
    "qwen3-vl-30b-a3b": ("qwen3_vl_moe", _published(27, 1152, 16, 4304, 2048, [8, 16, 24])),
}


def row_width(config):
    """Columns of a patch row."""
    return config["in_channels"] * config["temporal_patch_size"] * config["patch_size"] ** 2


def tower_shapes(config):
    """Every tensor of a tower: name after the prefix -> shape, in Hugging Face layout."""
    d, inner, out = config["hidden_size"], config["intermediate_size"], config["out_hidden_size"]
    merged = d * config["spatial_merge_size"] ** 2
    patch = config["patch_size"]
    shapes = {
        "patch_embed.proj.weight": [d, config["in_channels"], config["temporal_patch_size"], patch, patch],
        "patch_embed.proj.bias": [d],
        "pos_embed.weight": [config["num_position_embeddings"], d],
    }

    def linear(name, outputs, inputs):
        shapes[name + ".weight"] = [outputs, inputs]
        shapes[name + ".bias"] = [outputs]

    def norm(name, width):
        shapes[name + ".weight"] = [width]
        shapes[name + ".bias"] = [width]

    def merger(name, norm_width):
        norm(name + ".norm", norm_width)
        linear(name + ".linear_fc1", merged, merged)
        linear(name + ".linear_fc2", out, merged)

    for block in range(config["depth"]):
        name = f"blocks.{block}."
        norm(name + "norm1", d)
        norm(name + "norm2", d)
        linear(name + "attn.qkv", 3 * d, d)
        linear(name + "attn.proj", d, d)
        linear(name + "mlp.linear_fc1", inner, d)
        linear(name + "mlp.linear_fc2", d, inner)
    merger("merger", d)
    for index in range(len(config["deepstack_visual_indexes"])):
        merger(f"deepstack_merger_list.{index}", merged)
    return shapes


def fnv1a(name):
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def _u_chunk(seed, start, stop):
    """u of flat indexes start..stop-1; uint32 arithmetic wraps as the rule wants."""
    x = np.arange(start, stop, dtype=np.uint64).astype(np.uint32)
    x *= np.uint32(0x9E3779B9)
    x += np.uint32(seed)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return ((x >> np.uint32(8)).astype(np.float64) - 8388608.0) / 8388608.0


def _fill(name, shape, value_of_u):
    """float32 array of value_of_u(u), made in pieces by a few threads."""
    count = math.prod(shape)
    out = np.empty(count, dtype=np.float32)
    seed = fnv1a(name)
    piece = 1 << 18

    def work(start):
        stop = min(start + piece, count)
        out[start:stop] = value_of_u(_u_chunk(seed, start, stop))

    if count <= piece:
        work(0)
    else:
        with ThreadPoolExecutor() as threads:
            list(threads.map(work, range(0, count, piece)))
    return out.reshape(shape)


def u(name, shape):
    return _fill(name, shape, lambda values: values)


def to_bf16_bits(values):
    """float32 -> uint16, round to nearest even. Finite values only."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bf16_bits(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _is_norm_weight(name):
    parts = name.split(".")
    return parts[-1] == "weight" and len(parts) > 1 and "norm" in parts[-2]


def _is_zero_centred(name, model_type):
    text = ".visual." not in "." + name
    return model_type.startswith(("qwen3_5", "qwen4")) and text and "linear_attn.norm" not in name


def _rule(name, shape, init, model_type):
    if _is_norm_weight(name) and not _is_zero_centred(name, model_type):
        return lambda values: 1.0 + 0.25 * values
    if init not in ("quarter", "scaled"):
        raise ValueError(f"init is quarter or scaled, not {init}")
    table = "pos_embed." in name or "embed_tokens." in name
    if init == "scaled" and "bias" in name.split(".")[-1]:
        return lambda values: 0.1 * values
    if init == "scaled" and "A_log" in name:
        return lambda values: -3.0 + 3.0 * values
    if init == "quarter" or table or _is_norm_weight(name) or len(shape) < 2:
        return lambda values: 0.25 * values
    scale = math.sqrt(3.0 / math.prod(shape[1:]))
    return lambda values: scale * values


def weight(name, shape, init, dtype="f32", model_type="qwen3_vl"):
    """float32 values of a full tensor name; dtype "bf16" gives the values a bfloat16 file holds."""
    values = _fill(name, shape, _rule(name, shape, init, model_type))
    return from_bf16_bits(to_bf16_bits(values)) if dtype == "bf16" else values


def tower(shape_name, init, dtype):
    """All weights of a shape's tower: name after the prefix -> float32 array."""
    model_type, config = SHAPES[shape_name]
    return {name: weight(PREFIX + name, shape, init, dtype, model_type)
            for name, shape in tower_shapes(config).items()}


def patch_rows(case, item, grid, config):
    """Input rows of one item. The cases image and video use the vectors' two names, every other case CASE.ITEM."""
    name = {"image": "pixel_values", "video": "pixel_values_videos"}.get(case, f"{case}.{item}")
    return u(name, [math.prod(grid), row_width(config)])
