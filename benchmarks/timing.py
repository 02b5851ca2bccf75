"""What `fairtune time` is worth: whether its intervals hold, how narrow they are on a busy machine, and what freezing really saves.

    python benchmarks/timing.py aa [--sessions 100] [--seconds 30]    how many A/A intervals hold 1
    python benchmarks/timing.py busy [--minutes 3] [--foreign 1]      half-widths beside foreign busy processes
    python benchmarks/timing.py freeze [--minutes 8]                  frozen queries and keys against their bound, and making them

Every session is a real one, in a process of its own: MiniLM on movie reviews of 32 x 16 tokens, and for `freeze` also GPT-2 of
512 x 6 on made text. `aa` prints a line per session, so that it can be left in the background (an hour for 100) and looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOREIGN = "while True: pass"


def minilm_study(**arms: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": "timing",
        "task": "movie-reviews",
        "model": "minilm",
        "train": {"batch_size": 32, "examples": 1600, "eval_examples": 100, "epochs": 1, "max_length": 16, "lr": 1e-4},
        "seeds": 1,
        "arms": {"baseline": {}, **arms},
    }


def gpt2_study(folder: Path) -> dict[str, Any]:
    """GPT-2, 512 wide, 6 layers, on lines of made words."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 8))) for _ in range(2000)]
    for split, lines in (("train", 4000), ("validation", 200), ("test", 200)):
        text = "\n".join(" ".join(draw.choices(words, k=60)) for _ in range(lines))
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    return {
        "study": "timing-gpt2",
        "task": {
            "kind": "language_model",
            **{split: str(folder / f"{split}.txt") for split in ("train", "validation", "test")},
        },
        "model": "gpt-medium-512",
        "tokenizer": {"train": 2000},
        "train": {"batch_size": 8, "max_length": 64, "steps": 200, "lr": 1e-4},
        "seeds": 1,
        "arms": {"baseline": {}, "freeze-pretrained": {}},
    }


def session(study: dict[str, Any], seconds: float, precision: float) -> Any:
    from fairtune.api import time_study

    with tempfile.TemporaryDirectory() as runs:
        return time_study(study, runs, minutes=seconds / 60, precision=precision, progress=False, force=True)


def aa(sessions: int, seconds: float) -> None:
    """Sessions of the reference and its copy alone, each as long as it is told."""
    held, widths = 0, []
    for number in range(1, sessions + 1):
        found = session(minilm_study(), seconds, 1e-6)
        held += found.again.holds_one
        widths.append(found.again.half_width)
        print(
            f"session {number}: {found.again.ratio:.4f} ({found.again.low:.4f} to {found.again.high:.4f}), {found.rounds} "
            "rounds, "
            f"others {found.conditions.others[0]:.1f} cores; held 1 so far: {held} of {number}",
            flush=True,
        )
    print(
        f"A/A intervals that hold 1: {held} of {sessions}; half-width {100 * statistics.median(widths):.2f} % in the median"
    )


def busy(minutes: float, foreign: int) -> None:
    """One session of two arms and the A/A beside foreign busy processes."""
    with foreign_work(foreign):
        found = session(minilm_study(**{"freeze-pretrained": {}}), 60 * minutes, 1e-6)
    print(f"beside {foreign} foreign busy process(es), {found.seconds:.0f} s, {found.rounds} rounds:")
    for name, ratio in (("A/A", found.again), *((arm, one.found) for arm, one in found.ratios.items())):
        print(
            f"  {name:<18} {ratio.ratio:.4f} ({ratio.low:.4f} to {ratio.high:.4f}), half-width {100 * ratio.half_width:.2f} %"
        )
    print("  " + " ".join(found.conditions.lines()))


def freeze(minutes: float) -> None:
    """Frozen queries and keys, until the interval is a tenth of the saving or time is over."""
    with tempfile.TemporaryDirectory() as texts:
        studies = {"MiniLM": minilm_study(**{"freeze-pretrained": {}}), "GPT-2 512 x 6": gpt2_study(Path(texts))}
        for name, study in studies.items():
            found = session(study, 60 * minutes, 0.003)
            one = found.ratios["freeze-pretrained"]
            print(
                f"{name}: ratio {one.found.ratio:.4f} ({one.found.low:.4f} to {one.found.high:.4f}), bound {one.bound:.4f}: "
                f"{100 * one.reached:.0f} % of it; half-width {100 * one.found.half_width / (1 - one.found.ratio):.0f} % "
                "of the saving; "
                f"A/A {found.again.low:.4f} to {found.again.high:.4f}; {found.rounds} rounds in {found.seconds:.0f} s",
                flush=True,
            )


def orthogonalise() -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from fairtune.methods.orthogonal_qk import OrthogonalQK, OrthogonalQKConfig

    torch.manual_seed(0)
    network = BertForSequenceClassification(BertConfig())
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        OrthogonalQK(OrthogonalQKConfig(init="headwise")).prepare(network)
        seconds.append(time.perf_counter() - started)
    middle, low, high = statistics.median(seconds), min(seconds), max(seconds)
    print(f"orthogonalising bert-base (288 heads): {middle:.2f} s, median of 5 ({low:.2f} to {high:.2f})")


@contextlib.contextmanager
def foreign_work(count: int) -> Iterator[None]:
    """So many single-threaded processes that do nothing but compute."""
    processes = [subprocess.Popen([sys.executable, "-c", FOREIGN]) for _ in range(count)]
    time.sleep(1.0)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["aa", "busy", "freeze"])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0, help="of an A/A session")
    parser.add_argument("--minutes", type=float, default=None, help="of other sessions")
    parser.add_argument("--foreign", type=int, default=1, help="busy processes beside it")
    given = parser.parse_args()
    if given.part == "aa":
        aa(given.sessions, given.seconds)
    elif given.part == "busy":
        busy(given.minutes or 3.0, given.foreign)
    else:
        freeze(given.minutes or 8.0)
        orthogonalise()


if __name__ == "__main__":
    main()
