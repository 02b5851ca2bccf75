"""Maps as the method records them, made without training: classes in patches, more reliable with every pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.grid import Grid
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.records import EVENT, write_arrays
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study

STEPS = 5
"""Of an epoch."""
THRESHOLD = 0.95


def record_maps(
    folder: RunFolder,
    *,
    passes: int = 3,
    grid: Grid = Grid(6, 5),
    classes: Sequence[str] = ("negative", "positive"),
    units: int = 8,
    removed: Sequence[Sequence[int]] = ((), (1,), (4, 6)),
    alpha: float = 0.25,
    examples: int = 600,
    seed: int = 0,
) -> None:
    """Write records of that many passes, one per epoch, into a run that has been begun.

    Args:
        removed: numbers of the units that each pass removes; none at passes beyond.
    """
    generator = np.random.default_rng(seed)
    left = np.arange(units)
    log = EventLog(folder.events)
    for number in range(passes):
        gone = np.array(removed[number] if number < len(removed) else (), dtype=np.int64)
        arrays = made_arrays(generator, grid, len(classes), left, examples, sharp=(number + 1) / passes)
        step = STEPS * (number + 1)
        write_arrays(folder, "bpsom", step, {**arrays, "removed": gone})
        left = np.setdiff1d(left, gone)
        reliable = arrays["reliability"] >= THRESHOLD
        hits = arrays["counts"].sum(axis=1)
        log.write(
            EVENT, step, name="bpsom", step=step, epoch=number + 1, columns=grid.columns, rows=grid.rows,
            topology=grid.topology, classes=list(classes), units=len(left), units_at_start=units,
            use=0.0 if number == 0 else float(hits[reliable].sum() / hits.sum()),
            mean_reliability=float((hits * arrays["reliability"]).sum() / hits.sum()),
            labelled=float((arrays["labels"] >= 0).mean()), parameters=22_000_000 + 388 * len(left),
            head_parameters=388 * len(left), quantisation_error=0.9 / (number + 1), topographic_error=0.08 / (number + 1),
            radius=2 - number if number < 2 else 0, rate=0.2 - 0.05 * number, alpha=alpha, threshold=THRESHOLD,
            seconds=1.5 + 0.1 * number, examples=examples,
        )  # fmt: skip
    log.close()


def made_arrays(
    generator: np.random.Generator, grid: Grid, classes: int, units: np.ndarray, examples: int, sharp: float
) -> dict[str, np.ndarray]:
    """Args:
    sharp: how far the classes are parted, up to 1.
    """
    places = grid.positions()
    centres = generator.uniform(places.min(axis=0), places.max(axis=0), size=(2 * classes, 2))
    far = np.linalg.norm(places[:, None] - centres, axis=2)
    owner, near = far.argmin(axis=1) % classes, far.min(axis=1)
    hits = np.where(generator.random(grid.cells) < 0.12 * sharp, 0, generator.geometric(0.3, grid.cells))
    hits = np.round(hits * examples / max(1, hits.sum())).astype(np.int64)
    pure = np.clip(1 - 0.5 * (1 - sharp) - 0.1 * generator.random(grid.cells) * (near > near.mean()), 1 / classes, 1)
    major = np.round(hits * pure).astype(np.int64)
    counts = np.zeros((grid.cells, classes), dtype=np.int64)
    counts[np.arange(grid.cells), owner] = major
    counts[np.arange(grid.cells), (owner + 1) % classes] += hits - major
    labels = np.where(hits > 0, counts.argmax(axis=1), -1)
    reliability = np.floor(100 * counts.max(axis=1) / np.maximum(1, hits)) / 100
    waves = generator.normal(size=(2, len(units))) * 3 / max(grid.columns, grid.rows)
    pull = np.where(owner[:, None] == generator.integers(0, classes, len(units)), sharp, -sharp)
    prototypes = 1 / (1 + np.exp(-(2 * pull + np.sin(places @ waves))))
    touching = grid.distances() == 1
    squares = (prototypes**2).sum(axis=1)
    apart = np.sqrt(np.maximum(0, squares[:, None] + squares - 2 * prototypes @ prototypes.T))
    u_matrix = (apart * touching).sum(axis=1) / np.maximum(1, touching.sum(axis=1))
    drawn = prototypes[generator.choice(grid.cells, 500)]
    histogram = np.stack([np.histogram(column, bins=20, range=(0, 1))[0] for column in drawn.T])
    return {
        "prototypes": prototypes.astype(np.float32), "labels": labels.astype(np.int64),
        "reliability": reliability.astype(np.float32), "counts": counts, "u_matrix": u_matrix.astype(np.float32),
        "units": np.asarray(units, dtype=np.int64), "mean": drawn.mean(axis=0).astype(np.float32),
        "std": drawn.std(axis=0).astype(np.float32), "histogram": histogram.astype(np.int64),
    }  # fmt: skip


def made_run(
    runs: Path, arm: str = "bpsom", seed: int = 0, finished: bool = True, maps: bool = True, **how: Any
) -> RunFolder:
    """One run of the study `made`, with validation scores and, if asked for, maps."""
    folder = run_folder(runs, "made", arm, seed)
    run = {
        "arm": arm,
        "seed": seed,
        "position": 0,
        "key": f"{arm}-{seed}",
        "plan": "0",
        "study": "made",
        "settings": {},
    }
    folder.write_plan({**run, "signature": f"fairtune|arm:{arm}|seed:{seed}"})
    plan = {"plan": "0", "task": {"metric": "accuracy", "kind": "classify"}, "arms": {}, "compare": {}, "runs": []}
    write_study(runs / "made", plan)
    if maps:
        record_maps(folder, seed=seed, **how)
    log = EventLog(folder.events)
    for epoch in range(1, how.get("passes", 3) + 1):
        log.write(
            "evaluation", STEPS * epoch, split="validation", step=STEPS * epoch, epoch=epoch, accuracy=0.7 + epoch / 50
        )
    log.close()
    if finished:
        close_run(folder, run["key"], {"status": "finished", "metric": "accuracy", "best_step": 2 * STEPS})
    return folder
