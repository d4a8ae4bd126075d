"""What the peers of the tower share: qvl's time from its own bench, and the two taking turns."""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

SHAPE = "qwen3.5-27b"  # 27 blocks of 1152


def parser(description):
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sizes", nargs="*", type=int, default=[512])
    options.add_argument("--qvl", default="build/qvl")
    options.add_argument("--random-model", default="build/random_model")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--runs", type=int, default=3)
    return options


def qvl_seconds(program, folder, side, threads, dtype):
    out = subprocess.run(
        [program, "bench", "-m", folder, f"{side}x{side}", "--runs", "1", "--threads", str(threads), "--dtype", dtype,
         "--json", "--quiet"], check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(out)
    return result["kernels"], result["sizes"][0]["tower_seconds"]


def compare(name, prepare, arguments, dtype):
    """prepare(side): a call that runs the peer's tower once on a picture of that size and returns the seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "model")
        subprocess.run([arguments.random_model, "--shape", SHAPE, folder], check=True)
        for side in arguments.sizes:
            peer_seconds = prepare(side)
            peer_seconds()
            pairs = []
            for _ in range(arguments.runs):
                kernels, ours = qvl_seconds(arguments.qvl, folder, side, arguments.threads, dtype)
                pairs.append((peer_seconds(), ours))
            theirs, ours = (statistics.median(column) for column in zip(*pairs))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{side}x{side}: {name} {theirs:.3f} s, qvl ({kernels}) {ours:.3f} s, ratio {ratio:.2f}")
