"""What a run's self-organising map was at each labelling pass, read back from what the run recorded.

Figures come from the event lines, arrays from files beside them; a study's curves need the first only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import LedgerError, ModelError
from fairtune.core.grid import Grid
from fairtune.ledger.events import counted_events
from fairtune.ledger.folders import RunFolder, run_folders
from fairtune.ledger.records import EVENT, MethodRecord, read_records

NAME = "bpsom"
BINS = 20
Events = Iterable[dict[str, Any]]


@dataclass(frozen=True)
class MapPass:
    """The figures of one labelling pass; None where there was no finite number.

    Args:
        epoch: passes over the training examples that were complete.
        use: share of the training examples since the pass before whose SOM error was used; of a map that only watches,
            would have been.
        mean_reliability: of the cells that the training examples fall on, over the examples.
        labelled: share of cells with a label.
        units: left after this pass's pruning.
        parameters: left in the whole model.
        threshold: a cell at least so reliable pulls.
        seconds: of the labelling pass.
    """

    step: int
    epoch: int
    use: float | None
    mean_reliability: float | None
    labelled: float | None
    units: int | None
    units_at_start: int | None
    parameters: int | None
    head_parameters: int | None
    quantisation_error: float | None
    topographic_error: float | None
    radius: float | None
    rate: float | None
    alpha: float | None
    threshold: float | None
    prune: float | None
    seconds: float | None
    examples: int | None

    @property
    def watches_only(self) -> bool:
        return self.alpha == 0


@dataclass(frozen=True)
class MapRecord:
    """A map after one labelling pass, before that pass's pruning.

    Args:
        labels: one class per cell, -1 where it has none.
        reliability: share of a cell's examples that have its label.
        counts: examples on each cell by class.
        units: numbers of the hidden units before any pruning, one per column of the prototypes.
        histogram: examples by unit and twentieth of the activations from 0 to 1.
        removed: numbers of the units that this pass's pruning removed.
    """

    figures: MapPass
    grid: Grid
    classes: tuple[str, ...]
    prototypes: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    reliability: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]
    u_matrix: npt.NDArray[np.float32]
    units: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float32]
    std: npt.NDArray[np.float32]
    histogram: npt.NDArray[np.int64]
    removed: npt.NDArray[np.int64]

    @property
    def hits(self) -> npt.NDArray[np.int64]:
        """Examples on each cell."""
        found: npt.NDArray[np.int64] = self.counts.sum(axis=1)
        return found


@dataclass(frozen=True)
class UnitsScore:
    """A validation score and the hidden units that were left then.

    Args:
        epoch: passes over the training examples that were complete.
    """

    step: int
    epoch: int
    units: int
    score: float


def map_passes(events: Events) -> list[MapPass]:
    """The labelling passes that a run's events tell of, in their order."""
    matching = (event for event in events if event.get("event") == EVENT and event.get("name") == NAME)
    return sorted((_pass(int(e["step"]), int(e["epoch"]), e) for e in matching), key=lambda one: one.step)


def read_maps(folder: RunFolder) -> list[MapRecord]:
    """Every map that a run recorded, in order; none for a run without.

    Raises:
        LedgerError: a file is missing or damaged.
    """
    return [_map(folder, record) for record in read_records(folder, NAME)]


def seeds_with_maps(study: RunFolder) -> dict[str, list[int]]:
    """The seeds of each arm that recorded maps, over the whole study that a run belongs to."""
    found: dict[str, list[int]] = {}
    for folder in run_folders(study.path.parent.parent):
        if map_passes(counted_events(folder.events)):
            found.setdefault(folder.arm, []).append(folder.seed)
    return found


def units_and_scores(events: Sequence[dict[str, Any]], metric: str) -> list[UnitsScore]:
    """Each validation score with the units that were left: those of the last labelling pass until then."""
    passes = map_passes(events)
    if not passes:
        return []
    found = []
    for event in events:
        score = event.get(metric)
        if event.get("event") == "evaluation" and event.get("split") == "validation" and score is not None:
            step = int(event["step"])
            before = [one.units for one in passes if one.step <= step]
            units = before[-1] if before else passes[0].units_at_start
            if units is not None:
                found.append(UnitsScore(step, int(event.get("epoch", 0)), units, float(score)))
    return sorted(found, key=lambda one: one.step)


def _pass(step: int, epoch: int, figures: dict[str, Any]) -> MapPass:
    known = [field.name for field in fields(MapPass) if field.name not in ("step", "epoch")]
    return MapPass(step, epoch, **{name: figures.get(name) for name in known})


def _map(folder: RunFolder, record: MethodRecord) -> MapRecord:
    try:
        facts, arrays = record.figures, record.arrays
        grid = Grid(int(facts["columns"]), int(facts["rows"]), facts["topology"])
        classes = tuple(str(name) for name in facts["classes"])
        _require_shapes(arrays, grid.cells, len(classes))
        names = [field.name for field in fields(MapRecord)][3:]
        figures = _pass(record.step, record.epoch, facts)
        return MapRecord(figures, grid, classes, **{name: arrays[name] for name in names})
    except (KeyError, TypeError, ValueError, ModelError) as error:
        raise LedgerError(
            f"{folder.records}: the map recorded at step {record.step} is damaged ({_reason(error)}); move the run's folder "
            "away and run the study again."
        ) from None


def _require_shapes(arrays: dict[str, npt.NDArray[Any]], cells: int, classes: int) -> None:
    units = arrays["units"].size
    shapes = {
        "prototypes": (cells, units), "labels": (cells,), "reliability": (cells,), "counts": (cells, classes),
        "u_matrix": (cells,), "units": (units,), "mean": (units,), "std": (units,), "histogram": (units, BINS),
    }  # fmt: skip
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} is {list(arrays[name].shape)}, not {list(shape)}")
    labels = arrays["labels"]
    if labels.size and not (labels.min() >= -1 and labels.max() < classes):
        raise ValueError(f"labels are not all of -1 to {classes - 1}")


def _reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
