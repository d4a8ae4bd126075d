"""Makes tests/fixtures/sampler.json: what transformers' logits processors leave of random logits.

Needs torch and transformers; the processors are those that generate() would make (_get_logits_processor), so their
order is theirs, too. The presence penalty, which transformers does not have, is added where generate() puts processors
of the caller: it is vLLM's, output tokens only.

    python3 tools/oracle/sampler_fixtures.py OUT

A case has logits x = scale * u(name, [vocab]) (generator.py), or scale / 4 * floor(4 u) with "steps": true, and the
options of qvl_sampling that differ from its defaults. Results: the ids that are left, ascending, and their probabilities
in f64; greedy: the argmax. A case with a limit nearer than 1e-5 to some sum of probabilities is refused: it would test
torch's rounding.
"""

import json
import platform
import sys

import torch
import transformers
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, LogitsProcessorList
from transformers.generation.logits_process import LogitsProcessor

import generator

QWEN = dict(temperature=0.7, top_k=20, top_p=0.8)
SAID = list(range(3, 250, 7))
PROMPT = list(range(0, 257, 5)) + [4, 4, 300]
CASES = [
    dict(name="plain"),
    dict(name="warm", temperature=0.7),
    dict(name="hot", temperature=1.9),
    dict(name="cold", temperature=0.05),
    dict(name="top_k 1", top_k=1),
    dict(name="top_k 20", top_k=20),
    dict(name="top_k all", top_k=1000),
    dict(name="top_k ties", top_k=20, steps=True),
    dict(name="top_p 0.8", top_p=0.8),
    dict(name="top_p 0.95", top_p=0.95, scale=4.0),
    dict(name="top_p 0.1", top_p=0.1),
    dict(name="top_p 0", top_p=0.0),
    dict(name="top_p flat", top_p=0.9, scale=0.25),
    dict(name="min_p 0.05", min_p=0.05),
    dict(name="min_p 0.3", min_p=0.3, scale=2.0),
    dict(name="min_p 1", min_p=1.0),
    dict(name="min_p steps", min_p=0.01, steps=True, scale=8.0),
    dict(name="qwen", **QWEN),
    dict(name="qwen again", **QWEN, scale=4.0),
    dict(name="qwen thinking", temperature=1.0, top_k=20, top_p=0.95, presence_penalty=1.5, prompt=PROMPT, said=SAID),
    dict(name="everything", temperature=0.6, top_k=50, top_p=0.9, min_p=0.02, repetition_penalty=1.1,
         presence_penalty=0.5, prompt=PROMPT, said=SAID, never=[9, 17, 200], scale=4.0),
    dict(name="repetition", repetition_penalty=1.3, prompt=PROMPT, said=SAID),
    dict(name="repetition wanted", repetition_penalty=0.8, prompt=PROMPT, said=SAID),
    dict(name="presence", presence_penalty=1.5, prompt=PROMPT, said=SAID),
    dict(name="presence wanted", presence_penalty=-2.0, prompt=PROMPT, said=SAID),
    dict(name="both", repetition_penalty=1.05, presence_penalty=1.5, prompt=PROMPT, said=SAID, top_k=40),
    dict(name="never", never=list(range(0, 257, 2)), top_k=10),
    dict(name="one left", never=list(range(1, 257))),
    dict(name="greedy", do_sample=False),
    dict(name="greedy ties", do_sample=False, steps=True),
    dict(name="greedy penalised", do_sample=False, repetition_penalty=1.2, presence_penalty=3.0, prompt=PROMPT,
         said=SAID),
    dict(name="greedy never", do_sample=False, never=list(range(0, 257, 2))),
    dict(name="large, qwen", vocab=151936, **QWEN),
    dict(name="large, top_p", vocab=151936, top_p=0.05, scale=32.0),
    dict(name="large, min_p", vocab=151936, min_p=0.999, scale=32.0),
]
OPTIONS = dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0,
               presence_penalty=0.0)


class PresencePenalty(LogitsProcessor):
    def __init__(self, penalty, said):
        self.penalty, self.said = penalty, torch.tensor(sorted(set(said)), dtype=torch.long)

    def __call__(self, input_ids, scores):
        scores = scores.clone()
        scores[:, self.said] -= self.penalty
        return scores


def logits_of(case):
    u = torch.from_numpy(generator.u(case["name"], [case["vocab"]]).astype("float32"))
    if case["steps"]:
        return torch.floor(u * 4) * (case["scale"] / 4)
    return u * case["scale"]


def check_margins(case, before, nearest=1e-5):
    """Limits that fall between two tokens, not on one. before: scores that reach top-p."""
    p = before.double().softmax(-1)
    if case["top_p"] < 1 and not case["steps"]:
        ordered = p.sort().values
        margin = (ordered.cumsum(-1) - (1 - case["top_p"])).abs().min().item()
        assert margin > nearest or case["top_p"] == 0, (case["name"], margin)
    if case["min_p"]:
        margin = (p / p.max() - case["min_p"])[p > 0].abs().min().item()
        assert margin > nearest or case["min_p"] == 1, (case["name"], margin)


def run(model, case):
    config = GenerationConfig(do_sample=case["do_sample"], repetition_penalty=case["repetition_penalty"],
                              suppress_tokens=case["never"] or None)
    if case["do_sample"]:
        config.update(temperature=case["temperature"], top_k=case["top_k"], top_p=case["top_p"],
                      min_p=case["min_p"] or None)
    custom = LogitsProcessorList()
    if case["presence_penalty"]:
        custom.append(PresencePenalty(case["presence_penalty"], case["said"]))
    ids = torch.tensor([case["prompt"] + case["said"] or [0]])
    processors = model._get_logits_processor(config, input_ids_seq_length=ids.shape[1], device="cpu",
                                             logits_processor=custom, model_kwargs={})
    scores = logits_of(case)[None]
    for processor in processors:
        if type(processor).__name__ in ("TopPLogitsWarper", "MinPLogitsWarper"):
            check_margins(case, scores)
        scores = processor(ids, scores)
    if not case["do_sample"]:
        return [scores.argmax(-1).item()], [1.0]
    p = scores.double().softmax(-1)[0]
    kept = (scores[0] > -torch.inf).nonzero().flatten().tolist()
    return kept, [float("%.12g" % x) for x in p[kept].tolist()]


def main():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8, n_layer=1, n_head=1))
    cases = []
    for given in CASES:
        case = dict(OPTIONS, vocab=257, scale=16.0, steps=False, prompt=[], said=[], never=[])
        case.update(given)
        kept, probabilities = run(model, case)
        case = {k: v for k, v in case.items() if k not in OPTIONS or v != OPTIONS[k]}
        cases.append(dict(case, kept=kept, probabilities=probabilities))
        print("%-20s %6d kept of %d" % (case["name"], len(kept), case["vocab"]), file=sys.stderr)
    made_by = dict(transformers=transformers.__version__, torch=torch.__version__, python=platform.python_version())
    with open(sys.argv[1], "w") as file:
        file.write('{"made_by": %s,\n"cases": [\n' % json.dumps(made_by))
        file.write(",\n".join(json.dumps(case) for case in cases))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
