"""Trains the demo model.

    python3 train.py --masks masks.npz --out OUT [--seconds 480] [--span 0:1] [--from STATE_FOLDER] [--peak 1e-3]
    python3 train.py --make-masks masks.npz      (needs the fonts; paint.py names them)

Writes OUT/state_*.safetensors (f32 weights and Adam's second moments, to go on from or to export), OUT/results.json and
OUT/samples.png. A training of several runs: --span 0:0.5, then --span 0.5:1 --seed 2 --from the first's OUT. What
each worker makes is fixed by --seed; in which order their batches come is not.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import sys
import time

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

import batches
import media
import model as demo
import paint
import words

TOKENIZER = os.path.join(os.path.dirname(__file__), "..", "..", "models", "demo", "tokenizer.json")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--make-masks")
    parser.add_argument("--masks", default="masks.npz")
    parser.add_argument("--tokenizer", default=TOKENIZER)
    parser.add_argument("--out", default="out")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--steps", type=int, default=0, help="instead of --seconds")
    parser.add_argument("--span", default="0:1", help="of the schedule of learning rates")
    parser.add_argument("--evaluate", type=int, default=8000, help="conversations")
    parser.add_argument("--from", dest="begin")
    parser.add_argument("--peak", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--rows", type=int, default=0, help="conversations in every batch, for a try")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="without CUDA graphs")
    return parser.parse_args()


# ---- data

def produce(tokenizer_text, layouts, seed, out):
    """A worker: batches of layouts by their share, forever."""
    torch.set_num_threads(1)
    maker = batches.Maker(words.Tokenizer.from_str(tokenizer_text), seed)
    shares = [layout.share for layout in layouts]
    while True:
        number = maker.rng.choices(range(len(layouts)), shares)[0]
        out.put((number, maker.make(layouts[number])))


class Feed:
    def __init__(self, tokenizer, layouts, seed, workers):
        context = multiprocessing.get_context("fork")  # before CUDA starts
        self.queue = context.Queue(3 * workers)
        self.workers = [context.Process(target=produce, daemon=True,
                                        args=(tokenizer.to_str(), layouts, seed * 1000 + i, self.queue))
                        for i in range(workers)]
        for worker in self.workers:
            worker.start()

    def next(self):
        return self.queue.get()

    def close(self):
        for worker in self.workers:
            worker.kill()


def on_device(made, layout, masks):
    """Arrays and plan to the tensors of a step."""
    (ids, positions, weights, pads), plan, _ = made
    device = masks.device
    batch = {"ids": ids, "positions": positions, "weights": weights}
    batch = {name: torch.as_tensor(array, device=device) for name, array in batch.items()}
    if plan is not None:
        batch["pads"] = torch.as_tensor(pads, device=device)
        batch["rows"] = paint.patch_rows(paint.paint(plan, masks), layout.kind == "clip")
    return batch


# ---- a step

def products_in_bf16(device):
    """Weights, sums of layers and norms stay f32."""
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


class Step:
    """Loss and gradients of one layout; on CUDA recorded once and replayed."""

    pool = None

    def __init__(self, model, layout, example, graphs):
        self.model = model
        self.grid = demo.Grid(layout.height // 16, layout.width // 16, example["ids"].device) if layout.height else None
        self.batch = {name: tensor.clone() for name, tensor in example.items()}
        self.graph = None
        if graphs:
            self.record()

    def run_eager(self):
        with products_in_bf16(self.batch["ids"].device):
            loss = demo.loss(self.model, self.batch, self.grid)
        loss.backward()
        return loss.detach()

    def record(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.run_eager()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=Step.pool):
            self.loss = self.run_eager()
        Step.pool = Step.pool or graph.pool()
        self.graph = graph

    def run(self, batch):
        for name, tensor in batch.items():
            self.batch[name].copy_(tensor)
        if self.graph is None:
            return self.run_eager()
        self.graph.replay()
        return self.loss


class Optimizer:
    """AdamW on all parameters as one vector, so that a step is a few kernels and the state a few arrays.

    A step whose gradients are not finite is left out.
    """

    def __init__(self, model):
        parameters = list(model.parameters())
        total = sum(p.numel() for p in parameters)
        self.weights, self.gradients, self.decays, self.first, self.second = (
            torch.zeros(total, device=parameters[0].device) for _ in range(5))
        at = 0
        for p in parameters:
            piece = slice(at, at + p.numel())
            self.weights[piece] = p.data.flatten()
            self.decays[piece] = 0.05 if p.ndim > 1 else 0.0
            p.data, p.grad = self.weights[piece].view_as(p), self.gradients[piece].view_as(p)
            at += p.numel()
        self.skipped = torch.zeros((), device=parameters[0].device)
        self.count, self.betas = 0, (0.9, 0.98)

    def step(self, rate):
        self.count += 1
        a, b = self.betas
        norm = self.gradients.norm()
        finite = norm.isfinite()
        self.skipped += ~finite
        gradients = torch.where(finite, self.gradients * (1.0 / (norm + 1e-6)).clamp(max=1.0), self.first)
        self.first.lerp_(gradients, 1 - a)
        self.second.mul_(b).addcmul_(gradients, gradients, value=1 - b)
        change = (self.first / (1 - a ** self.count)) / ((self.second / (1 - b ** self.count)).sqrt_().add_(1e-8))
        self.weights.sub_(rate * finite * (change + self.decays * self.weights))
        self.gradients.zero_()


def rate_at(done, step, options):
    """Warm-up over 500 steps of every run; over all runs half a cosine down to a hundredth."""
    begin, end = map(float, options.span.split(":"))
    done = begin + (end - begin) * done
    return options.peak * min(1.0, (step + 1) / 500) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


# ---- evaluation

def evaluate(model, tokenizer, layouts, masks, count, seed):
    """Share of first answers, by kind, and of second ones that are right in every token, over about count conversations."""
    maker, right = batches.Maker(tokenizer, seed), {}
    shares = [layout.share for layout in layouts]
    end = tokenizer.token_to_id("<|im_end|>")
    model.eval()
    done = 0
    while done < count:
        layout = maker.rng.choices(layouts, shares)[0]
        made = maker.make(layout)
        batch = on_device(made, layout, masks)
        grid = demo.Grid(layout.height // 16, layout.width // 16, masks.device) if layout.height else None
        with torch.no_grad(), products_in_bf16(masks.device):
            best = demo.logits(model, batch, grid).argmax(-1)
        wanted = batch["ids"][:, 1:]
        answers = batch["weights"][:, 1:] > 0
        before = ((wanted == end) & answers).long().cumsum(1) - ((wanted == end) & answers).long()
        wrong = (best != wanted) & answers
        for turn in range(2):  # the first answer, and the second one if there is one
            there = (answers & (before == turn)).any(1)
            good = ~(wrong & (before == turn)).any(1)
            for i, kind in enumerate(made[2]):
                if there[i] and (turn == 0):
                    right.setdefault(kind, []).append(bool(good[i]))
                elif there[i]:
                    right.setdefault("later turns", []).append(bool(good[i]))
        done += layout.rows
    model.train()
    table = {kind: [round(sum(r) / len(r), 4), len(r)] for kind, r in sorted(right.items())}
    every = [value for r in right.values() for value in r]
    table["all"] = [round(sum(every) / len(every), 4), len(every)]
    return table


# ---- files

def save_state(optimizer, folder):
    """Two files of f32 weights and one of second moments, each below 16 MiB."""
    weights = optimizer.weights.cpu().numpy()
    half = len(weights) // 2
    save_file({"weights": weights[:half]}, f"{folder}/state_0.safetensors")
    save_file({"weights": weights[half:]}, f"{folder}/state_1.safetensors")
    second = optimizer.second.float().sqrt().half().cpu().numpy()  # roots, so that f16 reaches
    save_file({"second": second}, f"{folder}/state_2.safetensors")


def load_state(optimizer, folder):
    weights = np.concatenate([load_file(f"{folder}/state_{i}.safetensors")["weights"] for i in range(2)])
    optimizer.weights.copy_(torch.as_tensor(weights))
    optimizer.second.copy_(torch.as_tensor(load_file(f"{folder}/state_2.safetensors")["second"]).float().square())
    optimizer.count = 1000  # the moments are no longer young


def save_samples(tokenizer, masks, path):
    maker = batches.Maker(tokenizer, 5)
    made = maker.make(batches.Layout("picture", 256, 256, rows=8))
    pictures = media.painted(made[1], masks)
    media.write_picture(path, np.concatenate([np.concatenate(pictures[:4], 1), np.concatenate(pictures[4:], 1)]))


# ---- the run

def check_forward(model, tokenizer, masks):
    """The forward of model.py is transformers'."""
    layout = batches.Layout("pair", 128, 192, rows=3)
    made = batches.Maker(tokenizer, 3).make(layout)
    batch = on_device(made, layout, masks)
    types = (batch["ids"] == tokenizer.token_to_id("<|image_pad|>")).long()
    thw = torch.tensor([[1, layout.height // 16, layout.width // 16]] * 6, device=masks.device)
    grid = demo.Grid(layout.height // 16, layout.width // 16, masks.device)
    difference = demo.same_as_transformers(model, batch, grid, thw, types)
    print(f"forward differs from transformers' by {difference:.2e}", flush=True)
    assert difference < 2e-2


def train(options, model, tokenizer, layouts, feed, masks):
    optimizer = Optimizer(model)
    if options.begin:
        load_state(optimizer, options.begin)
    steps, losses, begun, number = {}, [], time.time(), 0
    graphs = masks.is_cuda and not options.eager
    last_print = begun
    while True:
        done = number / options.steps if options.steps else (time.time() - begun) / options.seconds
        if done >= 1:
            break
        which, made = feed.next()
        batch = on_device(made, layouts[which], masks)
        if which not in steps:
            try:
                steps[which] = Step(model, layouts[which], batch, graphs)
            except RuntimeError as error:
                print(f"no graphs: {error}", flush=True)
                graphs = False
                steps[which] = Step(model, layouts[which], batch, False)
            optimizer.gradients.zero_()
        losses.append(steps[which].run(batch).clone())
        optimizer.step(rate_at(done, number, options))
        number += 1
        if time.time() - last_print > 30:
            last_print = time.time()
            mean = torch.stack(losses[-200:]).float().mean().item()
            skipped = int(optimizer.skipped)
            print(f"{last_print - begun:5.0f} s  step {number}  loss {mean:.4f}  left out {skipped}  "
                  f"queue {feed.queue.qsize()}", flush=True)
            losses = losses[-200:]
            if skipped > 20 + number // 20:
                sys.exit("the gradients do not stay finite")
    return optimizer, number, time.time() - begun


def main():
    options = arguments()
    if options.make_masks:
        np.savez_compressed(options.make_masks, masks=paint.make_masks())
        return
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    torch.backends.cuda.enable_cudnn_sdp(False)  # torch 2.11: its backward gives NaN for finite inputs
    layouts = batches.small(batches.LAYOUTS, options.rows) if options.rows else batches.LAYOUTS
    tokenizer = words.load_tokenizer(options.tokenizer)
    feed = Feed(tokenizer, layouts, options.seed, options.workers)
    masks = media.load_masks(options.masks).to(options.device)
    model = demo.make(tokenizer).to(options.device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    demo.use_fast_parts()
    check_forward(model, tokenizer, masks)
    model.train()
    optimizer, number, seconds = train(options, model, tokenizer, layouts, feed, masks)
    feed.close()
    os.makedirs(options.out, exist_ok=True)
    save_state(optimizer, options.out)
    save_samples(tokenizer, masks, f"{options.out}/samples.png")
    results = {"steps": number, "seconds": round(seconds, 1), "torch": torch.__version__, "seed": options.seed,
               "right": evaluate(model, tokenizer, layouts, masks, options.evaluate, 99)}
    print(json.dumps(results), flush=True)
    with open(f"{options.out}/results.json", "w") as file:
        json.dump(results, file, indent=1)
    sys.stdout.flush()
    os._exit(0)  # workers may hold the queue


if __name__ == "__main__":
    main()
