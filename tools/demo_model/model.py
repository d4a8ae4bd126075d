"""The model: transformers' own Qwen3-VL, its modules called directly.

Its forward makes positions, interpolation weights and masks picture by picture in Python; here they come with the
batch, where all pictures have one size, so that a step is matrix products and little else. `same_as_transformers`
shows that the result is that of transformers' forward.
"""

import numpy as np
import torch
import torch.nn.functional as F
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
from transformers.models.qwen3_vl import modeling_qwen3_vl as modeling

TEXT = dict(hidden_size=256, intermediate_size=480, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2,
            head_dim=64, max_position_embeddings=8192, rms_norm_eps=1e-6, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="default", rope_theta=100000.0, mrope_section=[12, 10, 10],
                                 mrope_interleaved=True))
VISION = dict(depth=6, hidden_size=192, num_heads=3, intermediate_size=576, out_hidden_size=256,
              num_position_embeddings=576, deepstack_visual_indexes=[2], patch_size=16, spatial_merge_size=2,
              temporal_patch_size=2, in_channels=3)


def make(tokenizer):
    token = tokenizer.token_to_id
    text = dict(TEXT, vocab_size=tokenizer.get_vocab_size(), eos_token_id=token("<|im_end|>"),
                pad_token_id=None, bos_token_id=None)
    config = Qwen3VLConfig(
        vision_config=dict(VISION), text_config=text, tie_word_embeddings=True,
        image_token_id=token("<|image_pad|>"), video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"), vision_end_token_id=token("<|vision_end|>"))
    config._attn_implementation = "sdpa"
    return Qwen3VLForConditionalGeneration(config)


def segment_attention(self, hidden_states, cu_seqlens, position_embeddings=None, **_):
    """modeling.Qwen3VLVisionAttention.forward for segments of one length, which is what cu_seqlens is here."""
    rows, length = hidden_states.shape[0], cu_seqlens
    q, k, v = self.qkv(hidden_states).reshape(rows, 3, self.num_heads, -1).unbind(1)
    q, k = modeling.apply_rotary_pos_emb_vision(q, k, *position_embeddings)

    def heads(x):
        return x.reshape(rows // length, length, self.num_heads, -1).transpose(1, 2)

    out = F.scaled_dot_product_attention(heads(q).to(v.dtype), heads(k).to(v.dtype), heads(v), scale=self.scaling)
    return self.proj(out.transpose(1, 2).reshape(rows, -1))


def fused_norm(self, hidden_states):
    """modeling.Qwen3VLTextRMSNorm.forward in one kernel."""
    return F.rms_norm(hidden_states, self.weight.shape, self.weight.to(hidden_states.dtype), self.variance_epsilon)


def embed_patches(self, rows):
    """modeling.Qwen3VLVisionPatchEmbed.forward: a convolution of one place is a product."""
    return F.linear(rows, self.proj.weight.flatten(1), self.proj.bias)


def use_fast_parts():
    modeling.Qwen3VLVisionPatchEmbed.forward = embed_patches
    modeling.Qwen3VLVisionAttention.forward = segment_attention
    modeling.Qwen3VLTextRMSNorm.forward = fused_norm


# ---- constants of a grid

def merge_order(height, width):
    """Rows and columns of a grid's patches in the order in which they are fed."""
    rows = np.arange(height).reshape(height // 2, 1, 2, 1)
    columns = np.arange(width).reshape(1, width // 2, 1, 2)
    whole = (height // 2, width // 2, 2, 2)
    return np.broadcast_to(rows, whole).ravel(), np.broadcast_to(columns, whole).ravel()


class Grid:
    """Bilinear indices and weights into the position table [4, patches], and the rotary angles [patches, head_dim]."""

    def __init__(self, height, width, device, table_side=24, head_dim=64):
        rows, columns = merge_order(height, width)
        y = np.linspace(0, table_side - 1, height, dtype=np.float32)[rows]
        x = np.linspace(0, table_side - 1, width, dtype=np.float32)[columns]
        y0, x0 = y.astype(np.int64), x.astype(np.int64)
        y1, x1 = np.minimum(y0 + 1, table_side - 1), np.minimum(x0 + 1, table_side - 1)
        dy, dx = y - y0, x - x0
        indices = np.stack([y0 * table_side + x0, y0 * table_side + x1, y1 * table_side + x0, y1 * table_side + x1])
        weights = np.stack([(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx])
        frequencies = 10000.0 ** -(np.arange(0, head_dim // 2, 2) / (head_dim // 2))
        angles = np.concatenate([np.outer(rows, frequencies), np.outer(columns, frequencies)], axis=1)
        angles = torch.as_tensor(np.concatenate([angles, angles], axis=1), dtype=torch.float32, device=device)
        self.patches = height * width
        self.indices = torch.as_tensor(indices, device=device)
        self.weights = torch.as_tensor(weights, dtype=torch.float32, device=device)
        self.cosine, self.sine = angles.cos(), angles.sin()


# ---- forward

def see(model, rows, grid):
    """Patch rows of pictures of one grid to features and deepstack features, [tokens, width]."""
    visual = model.model.visual
    count = rows.shape[0] // grid.patches
    places = (visual.pos_embed(grid.indices).float() * grid.weights[:, :, None]).sum(0)
    hidden = visual.patch_embed(rows)
    hidden = hidden.unflatten(0, (count, grid.patches)) + places.to(hidden.dtype)
    hidden = hidden.flatten(0, 1)
    angles = grid.cosine.repeat(count, 1), grid.sine.repeat(count, 1)
    deep = []
    for number, block in enumerate(visual.blocks):
        hidden = block(hidden, cu_seqlens=grid.patches, position_embeddings=angles)
        if number in visual.deepstack_visual_indexes:
            merger = visual.deepstack_merger_list[visual.deepstack_visual_indexes.index(number)]
            deep.append(merger(hidden))
    return visual.merger(hidden), deep


def read(model, ids, positions, pads, features, deep):
    """Token rows with features at the flat indices `pads` to the last hidden states [batch, length, width]."""
    language = model.model.language_model
    hidden = language.embed_tokens(ids)
    if features is not None:
        hidden = hidden.flatten(0, 1).index_copy(0, pads, features.to(hidden.dtype)).unflatten(0, ids.shape)
    angles = language.rotary_emb(hidden, positions)
    for number, layer in enumerate(language.layers):
        hidden = layer(hidden, attention_mask=None, position_ids=None, position_embeddings=angles)
        if features is not None and number < len(deep):
            hidden = hidden.flatten(0, 1).index_add(0, pads, deep[number].to(hidden.dtype)).unflatten(0, ids.shape)
    return language.norm(hidden)


def logits(model, batch, grid):
    features, deep = see(model, batch["rows"], grid) if grid else (None, [])
    hidden = read(model, batch["ids"], batch["positions"], batch.get("pads"), features, deep)
    return model.lm_head(hidden[:, :-1])


def loss(model, batch, grid):
    """Weighted mean over the tokens of answers; each predicts the next one."""
    scores = logits(model, batch, grid).flatten(0, 1).float()
    wanted, weights = batch["ids"][:, 1:].flatten(), batch["weights"][:, 1:].flatten()
    return (F.cross_entropy(scores, wanted, reduction="none") * weights).sum() / weights.sum()


def same_as_transformers(model, batch, grid, grid_thw, types):
    """Largest difference of the logits between this forward and transformers' own, of one batch in f32."""
    with torch.no_grad():
        mine = logits(model, batch, grid)
        fast = [part.forward for part in PARTS]
        for part, forward in zip(PARTS, ORIGINAL):
            part.forward = forward
        media = dict(pixel_values=batch["rows"], image_grid_thw=grid_thw) if grid else {}
        whole = model(input_ids=batch["ids"], position_ids=batch["positions"], mm_token_type_ids=types,
                      use_cache=False, **media).logits[:, :-1]
        for part, forward in zip(PARTS, fast):
            part.forward = forward
    used = batch["weights"][:, 1:] > 0
    return (mine - whole)[used].abs().max().item()


PARTS = modeling.Qwen3VLVisionAttention, modeling.Qwen3VLVisionPatchEmbed, modeling.Qwen3VLTextRMSNorm
ORIGINAL = [part.forward for part in PARTS]
