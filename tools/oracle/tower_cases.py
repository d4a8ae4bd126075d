"""What the tower's oracles share: the calls they make, and how stages are compared."""

import os
import subprocess
from pathlib import Path

import numpy as np

import generator

# Every stage within this of the reference in float32; the two references agree to 4e-13 with each other.
BOUND = 1e-11

# One call of the tower each: the grids of its items.
TINY_CASES = {"image": [[1, 4, 6]], "video": [[2, 4, 4]], "mixed": [[1, 4, 6], [2, 4, 4], [1, 2, 2], [3, 6, 4]],
              "odd": [[5, 2, 6]]}
DEMO_CASES = {"small": [[1, 4, 4]], "image": [[1, 8, 12]], "video": [[2, 4, 4]]}


def input_rows(shape, case, grids):
    """The patch rows of a call, items after one another."""
    config = generator.SHAPES[shape][1]
    return np.concatenate([generator.patch_rows(case, item, grid, config) for item, grid in enumerate(grids)])


def nmse(values, reference):
    values, reference = values.astype(np.float64), reference.astype(np.float64)
    return float(((values - reference) ** 2).sum() / (reference**2).sum())


def worst_row(values, reference):
    return max(nmse(a, b) for a, b in zip(values, reference))


def write_model(folder, shape, init, dtype):
    """The folder that the C tool writes, for qvl to open."""
    build = Path(os.environ.get("QVL_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
    subprocess.run([build / "random_model", "--shape", shape, "--init", init, "--dtype", dtype, folder], check=True)


def compare(label, qvl, reference):
    """Whether every stage of the reference is among qvl's taps and within the bound; prints the worst."""
    missing = sorted(set(reference) - set(qvl))
    if missing:
        print(f"{label}: qvl shows no {missing}, only {sorted(qvl)}")
        return False
    errors = {}
    for name, values in reference.items():
        if qvl[name].shape != values.shape:
            print(f"{label}: {name} is {qvl[name].shape} in qvl, {values.shape} in the reference")
            return False
        errors[name] = nmse(qvl[name], values)
    worst = max(errors, key=errors.get)
    print(f"{label}: {len(errors)} stages, worst {errors[worst]:.1e} ({worst}), pos_embed {errors['pos_embed']:.1e}, "
          f"merged {errors['merged']:.1e}, its worst row {worst_row(qvl['merged'], reference['merged']):.1e}")
    above = [name for name, error in errors.items() if not error <= BOUND]
    if above:
        print(f"{label}: above {BOUND}: " + ", ".join(f"{name} {errors[name]:.2e}" for name in above))
    return not above


def compare_features(features, reference):
    """Whether an encode's results are the stages merged and deepstack.K, within the bound."""
    pairs = [(features["embeds"], reference["merged"])]
    pairs += [(values, reference[f"deepstack.{index}"]) for index, values in enumerate(features["deepstack"])]
    expected = 1 + sum(name.startswith("deepstack.") for name in reference)
    return len(pairs) == expected and all(a.shape == b.shape and nmse(a, b) <= BOUND for a, b in pairs)
