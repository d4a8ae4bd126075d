"""transformers' language models with formula weights, and the inputs that qvl's tests give them.

A prompt here needs no tokenizer and no tower: token ids are given, the rows of vision tokens and of deepstack are u()
arrays by name. The C side (tests/lm/prompts.c) makes the same.
"""

import sys
from contextlib import contextmanager

import numpy as np
import torch

import generator

MODELS = {
    "qwen3_vl": ("qwen3_vl", "Qwen3VLTextModel", "Qwen3VLTextConfig"),
    "qwen3_vl_moe": ("qwen3_vl_moe", "Qwen3VLMoeTextModel", "Qwen3VLMoeTextConfig"),
}

def rope(theta, sections, **yarn):
    return dict(rope_type="yarn" if yarn else "default", rope_theta=theta, mrope_section=sections, mrope_interleaved=True,
                **yarn)


def text_config(shape):
    """text_config of a shape of random_model, by its name there; -yarn: with stretched rotary frequencies."""
    tiny = dict(vocab_size=64, hidden_size=24, intermediate_size=40, num_attention_heads=4, num_key_value_heads=2,
                head_dim=16, max_position_embeddings=512, rope_parameters=rope(5e6, [4, 2, 2]))
    experts = dict(moe_intermediate_size=16, num_experts=6, num_experts_per_tok=2, decoder_sparse_step=1,
                   mlp_only_layers=[], norm_topk_prob=True)
    large = dict(vocab_size=4096, num_hidden_layers=8, head_dim=64, max_position_embeddings=8192)
    shapes = {
        "tiny-vl": ("qwen3_vl", dict(tiny, num_hidden_layers=3)),
        "tiny-vlmoe": ("qwen3_vl_moe", dict(tiny, num_hidden_layers=2, **experts)),
        "lm-test": ("qwen3_vl", dict(large, hidden_size=512, intermediate_size=1536, num_attention_heads=8,
                                     num_key_value_heads=2, rope_parameters=rope(5e6, [12, 10, 10]))),
        "lm-test-moe": ("qwen3_vl_moe", dict(large, hidden_size=256, intermediate_size=512, num_attention_heads=8,
                                             num_key_value_heads=4, rope_parameters=rope(5e6, [12, 10, 10]),
                                             **dict(experts, moe_intermediate_size=128, num_experts=16,
                                                    num_experts_per_tok=4))),
    }
    model_type, config = shapes[shape.removesuffix("-yarn")]
    if shape.endswith("-yarn"):
        config = dict(config, max_position_embeddings=8192,
                      rope_parameters=rope(5e6, [4, 2, 2], factor=4.0, original_max_position_embeddings=2048))
    return model_type, config


class Model:
    """A text model and its head, in dtype; weights are the formula's, rounded to bf16 where stored so."""

    def __init__(self, shape, init, stored, dtype, attention="eager", device="cpu"):
        self.model_type, config = text_config(shape)
        package, model_name, config_name = MODELS[self.model_type]
        self.module = __import__(f"transformers.models.{package}.modeling_{package}", fromlist=["_"])
        configuration = __import__(f"transformers.models.{package}.configuration_{package}", fromlist=["_"])
        self.config = getattr(configuration, config_name)(**config)
        self.config._attn_implementation = attention
        if hasattr(self.config, "_experts_implementation"):
            self.config._experts_implementation = "eager"
        with torch.device("meta"):
            self.model = getattr(self.module, model_name)(self.config)
        self.model = self.model.to_empty(device=device).to(dtype).eval()
        self.model.rotary_emb = type(self.model.rotary_emb)(self.config).to(device)
        self.dtype, self.device, self.init, self.stored = dtype, device, init, stored
        state = {name: self.weight("model.language_model." + name, list(value.shape))
                 for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(state, strict=True)
        self.head = self.weight("lm_head.weight", [self.config.vocab_size, self.config.hidden_size])
        assert self.model.config._attn_implementation == attention
        assert self.model.rotary_emb.inv_freq.dtype == torch.float32

    def weight(self, name, shape):
        values = generator.weight(name, shape, self.init, self.stored, self.model_type)
        return torch.from_numpy(values).to(self.device, self.dtype)

    def logits(self, normed):
        return torch.nn.functional.linear(normed, self.head)

    def embed(self, ids):
        return self.model.embed_tokens(torch.tensor(ids, device=self.device))


def numpy_of(tensor):
    tensor = tensor.detach().to("cpu")
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()


class Stages:
    """Keeps what the stages of a run put out, under qvl's names."""

    def __init__(self, model, inner=True):
        self.model, self.inner, self.found, self.hooks = model, inner, {}, []
        for index, layer in enumerate(model.model.layers):
            name = f"layers.{index}"
            self.output(layer, name)
            if inner:
                self.output(layer.input_layernorm, name + ".norm1")
                self.output(layer.post_attention_layernorm, name + ".norm2")
                self.input(layer.self_attn.o_proj, name + ".attn")
                self.output(layer.self_attn.v_proj, name + ".v", (-1, model.config.head_dim))
                if hasattr(layer.mlp, "down_proj"):
                    self.input(layer.mlp.down_proj, name + ".mlp")
        self.output(model.model.norm, "norm")

    def keep(self, name, tensor, shape=None):
        values = numpy_of(tensor[0] if isinstance(tensor, tuple) else tensor)
        values = values.reshape(-1, values.shape[-1])
        self.found[name] = values.reshape(len(values), *shape) if shape else values

    def output(self, module, name, shape=None):
        self.hooks.append(module.register_forward_hook(lambda _m, _a, out: self.keep(name, out, shape)))

    def input(self, module, name):
        self.hooks.append(module.register_forward_pre_hook(lambda _m, args: self.keep(name, args[0])))

    @contextmanager
    def rotary(self):
        """q and k after rotation, by wrapping the function; layers call it in order."""
        module, calls = self.model.module, []
        plain = module.apply_rotary_pos_emb

        def rotate(q, k, cos, sin, *args, **kwargs):
            q, k = plain(q, k, cos, sin, *args, **kwargs)
            if self.inner:
                for name, values in (("q", q), ("k", k)):
                    self.found[f"layers.{len(calls)}.{name}"] = numpy_of(values)[0].swapaxes(0, 1).copy()
            calls.append(None)
            return q, k

        module.apply_rotary_pos_emb = rotate
        try:
            yield
        finally:
            module.apply_rotary_pos_emb = plain


def run(model, embeds, positions, visual, deepstack, inner=True):
    """All stages of a prompt [length, hidden], as float32 arrays by name."""
    stages = Stages(model, inner)
    extra = {}
    if deepstack:
        extra = dict(visual_pos_masks=torch.from_numpy(visual)[None],
                     deepstack_visual_embeds=[d.to(model.device, model.dtype) for d in deepstack])
    with torch.no_grad(), stages.rotary():
        out = model.model(inputs_embeds=embeds.to(model.device, model.dtype)[None],
                          position_ids=torch.from_numpy(positions)[:, None].to(model.device), use_cache=False, **extra)
        stages.found["logits"] = numpy_of(model.logits(out.last_hidden_state))[0]
    for hook in stages.hooks:
        hook.remove()
    return stages.found


def nmse(values, reference):
    values, reference = values.astype(np.float64), reference.astype(np.float64)
    return float(((values - reference) ** 2).sum() / (reference**2).sum())


if __name__ == "__main__":
    sys.exit("lm_reference.py is used by lm_fixtures.py and lm_oracle.py")
