"""Two runs beside each other: settings, environments, curves, scores, and the predictions in which they differ.

Two runs say nothing about methods: the luck of one seed is in each. This is for finding out why they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.analysis.decision_lines import HALF, LinePolicy, line_metric
from fairtune.analysis.fact_differences import FactDifference, differing_facts, flat_facts, method_facts
from fairtune.analysis.hardware import hardware_of, readable
from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.analysis.results import load_results
from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed
from fairtune.ledger.folders import find_folder
from fairtune.ledger.predictions import EXAMPLES_FILE, Predictions, TextScores, read_examples
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import read_study

MOMENTARY = ("time", "load", "load_after", "seal")
"""What an environment says of one moment only."""
POINTS, SHOWN, LONGEST = 12, 5, 200
"""Of a curve of losses; examples that are shown; letters of a text that are."""
ALONE = "One run of each says nothing about methods: the luck of a seed is in both. `fairtune report` compares arms over seeds."


@dataclass(frozen=True)
class RunBeside:
    """One of the runs.

    Args:
        problem: why nothing of it is shown, or how it failed.
        scores: of the test split, recomputed from its predictions.
    """

    name: str
    study: str
    arm: str
    seed: int
    status: str
    problem: str | None
    signature: str | None
    steps: int | None
    seconds: float | None
    scores: dict[str, float]


@dataclass(frozen=True)
class CurvePair:
    """A curve of both runs over optimizer steps; None where a run has no point there.

    Args:
        alike: whether both are on one scale; losses of other methods need not be.
    """

    name: str
    points: tuple[tuple[int, float | None, float | None], ...]
    alike: bool = True


@dataclass(frozen=True)
class DifferingExample:
    """An example on which two runs do not agree.

    Args:
        label, answers: names of classes; of a document, what it is compared by and both losses per token.
        texts: as the study kept them, perhaps cut; empty where it kept none.
    """

    id: str
    label: str
    answers: tuple[str, str]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class PredictionPair:
    """Predictions of the same test examples.

    Args:
        differing: examples that get another class, or documents with another loss.
        both_right, first_right, second_right, both_wrong: of classes; of documents, `first_right` and `second_right` count
            those on which that run has the lower loss.
        same_scores: whether all scores are equal to the bit.
    """

    n: int
    unit: str
    differing: int
    both_right: int
    first_right: int
    second_right: int
    both_wrong: int
    same_scores: bool
    examples: tuple[DifferingExample, ...]


@dataclass(frozen=True)
class RunPair:
    """Two runs beside each other.

    Args:
        metric: of the first run's study; None where it is not known.
        untold: what is not compared, and why; why there are no scores or predictions side by side.
        weights: what is on record of the trained weights.
    """

    runs: tuple[RunBeside, RunBeside]
    metric: str | None
    settings: tuple[FactDifference, ...]
    environment: tuple[FactDifference, ...]
    curves: tuple[CurvePair, ...]
    predictions: PredictionPair | None
    untold: tuple[str, ...]
    weights: str
    note: str = ALONE


def compare_runs(first: str | Path, second: str | Path, runs: Path) -> RunPair:
    """Two runs by their folders, or as `study/arm/seed-n`.

    Raises:
        LedgerError: there is no such run, or it is the same one twice.
    """
    sides = _Side(first, runs), _Side(second, runs)
    if sides[0].run.folder.path == sides[1].run.folder.path:
        raise LedgerError(f"'{first}' and '{second}' are the same run; name two different ones.")
    names = _names(sides)
    untold = [f"{name} is {side.told}" for name, side in zip(names, sides, strict=True) if side.told]
    found = None if untold else _predictions(sides)
    if isinstance(found, str):
        untold.append(found)
    if None not in (kinds := [hardware_of(side.run.environment) for side in sides]) and kinds[0] != kinds[1]:
        untold.append("what the runs took, as they were on unlike hardware")
    metric = sides[0].metric if sides[0].metric == sides[1].metric else None
    return RunPair(
        (sides[0].face(names[0]), sides[1].face(names[1])),
        metric,
        tuple(differing_facts([side.settings() for side in sides])),
        tuple(differing_facts([side.environment() for side in sides])),
        tuple(_curves(sides, metric)),
        found if isinstance(found, PredictionPair) else None,
        tuple(untold),
        _weights(sides),
    )


class _Side:
    """One of the runs, as far as it can be read."""

    def __init__(self, name: str | Path, runs: Path) -> None:
        folder = find_folder(name, runs)
        self.home = folder.path.parent.parent
        try:
            self.planned = read_sealed(folder.plan)
        except (OSError, ValueError):
            self.planned = {}
        try:
            self.plan = read_study(self.home)
        except LedgerError:
            self.plan = {}
        policy = LinePolicy()
        if (self.plan.get("compare") or {}).get("threshold", HALF) != HALF:
            policy = load_results(self.home.parent, self.home.name).line_policy()
        elif self.metric is not None:
            policy = LinePolicy(metric=line_metric(self.metric))
        self.run = LedgerRun(folder.arm, folder.seed, 0, folder, run_state(folder), lambda: policy)

    @property
    def task(self) -> Mapping[str, Any]:
        own = (self.planned.get("settings") or {}).get("task")
        return {**(self.plan.get("task") or {}), **(own if isinstance(own, Mapping) else {})}

    @property
    def metric(self) -> str | None:
        found = self.task.get("metric")
        return found if isinstance(found, str) else None

    @property
    def told(self) -> str:
        """Why it has no scores; empty where it has."""
        status = self.run.status
        if status == FINISHED:
            return ""
        reason = self.run.problem if status == DAMAGED else self.run.result.get("reason")
        return f"{status}{f' ({reason})' if reason else ''}: it has no scores to compare"

    def face(self, name: str) -> RunBeside:
        run, done = self.run, self.run.status == FINISHED
        seconds, steps = (run.result.get("seconds") or {}).get("total"), run.result.get("steps")
        return RunBeside(
            name, self.home.name, run.arm, run.seed, run.status, run.problem or run.result.get("reason"),
            self.planned.get("signature"), steps if isinstance(steps, int) else None,
            seconds if isinstance(seconds, int | float) else None, dict(run.metrics) if done else {},
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        own = dict(self.planned.get("settings") or {})
        methods = own.pop("methods", None) or ()
        return {**flat_facts({"arm": self.run.arm, "seed": self.run.seed, **own}), **method_facts(methods)}

    def environment(self) -> dict[str, Any]:
        found = self.run.environment if self.run.status != DAMAGED else None
        return flat_facts({name: value for name, value in readable(found or {}).items() if name not in MOMENTARY})

    def curve(self, event: str, figure: str) -> dict[int, float]:
        if self.run.status == DAMAGED:
            return {}
        found = (e for e in self.run.events_of(event) if event == "step" or e.get("split") == "validation")
        return {int(e["step"]): float(e[figure]) for e in found if isinstance(e.get(figure), int | float)}


def _names(sides: Sequence[_Side]) -> list[str]:
    """Names that tell them apart: with the study, and with its folder where that is the same."""
    parts = [side.run.folder.path.parts for side in sides]
    length = next((n for n in range(3, max(map(len, parts)) + 1) if parts[0][-n:] != parts[1][-n:]), 3)
    return ["/".join(one[-length:]) for one in parts]


def _curves(sides: Sequence[_Side], metric: str | None) -> list[CurvePair]:
    if _task_of(sides[0]) != _task_of(sides[1]):
        return []
    losses = [side.curve("step", "loss") for side in sides]
    last = max((max(one) for one in losses if one), default=0)
    stretch = max(1, math.ceil(last / POINTS))
    methods = [(side.planned.get("settings") or {}).get("methods") for side in sides]
    found = [_joined("training loss", [_smoothed(one, stretch) for one in losses], methods[0] == methods[1])]
    for name in dict.fromkeys(("loss", metric)):
        if name is not None:
            found.append(_joined(f"validation {name}", [side.curve("evaluation", name) for side in sides]))
    return [one for one in found if one.points]


def _smoothed(points: Mapping[int, float], stretch: int) -> dict[int, float]:
    """Means over stretches of steps, each at its last step."""
    found: dict[int, list[float]] = {}
    last = max(points, default=0)
    for step, value in points.items():
        found.setdefault(min(last, math.ceil(step / stretch) * stretch), []).append(value)
    return {step: sum(values) / len(values) for step, values in sorted(found.items())}


def _joined(name: str, sides: Sequence[Mapping[int, float]], alike: bool = True) -> CurvePair:
    steps = sorted({step for one in sides for step in one})
    return CurvePair(name, tuple((step, sides[0].get(step), sides[1].get(step)) for step in steps), alike)


def _task_of(side: _Side) -> tuple[Any, Any]:
    return side.task.get("name"), side.task.get("fingerprint")


def _predictions(sides: Sequence[_Side]) -> PredictionPair | str:
    """The predictions side by side, or why they are not."""
    tasks = [_task_of(side) for side in sides]
    ours, theirs = (side.run.test for side in sides)
    if tasks[0] != tasks[1]:
        names = " and ".join(f"{name} ({str(found)[:8]})" for name, found in tasks)
        return f"they are runs of different tasks, {names}, so neither scores nor predictions stand side by side"
    if type(ours) is not type(theirs) or ours.ids != theirs.ids:
        shared = len(set(ours.ids) & set(theirs.ids))
        return f"they were scored on different examples: {len(ours.ids):,} and {len(theirs.ids):,}, {shared:,} of them the same"
    if isinstance(ours, TextScores) and isinstance(theirs, TextScores):
        return _documents(sides, ours, theirs)
    assert isinstance(ours, Predictions)
    assert isinstance(theirs, Predictions)
    if not np.array_equal(ours.labels, theirs.labels):
        return "the same examples have other labels in the other run"
    return _classes(sides, ours, theirs)


def _classes(sides: Sequence[_Side], ours: Predictions, theirs: Predictions) -> PredictionPair:
    labels = [str(label) for label in sides[0].task.get("labels") or ()]
    right = [one.predicted == one.labels for one in (ours, theirs)]
    apart = np.flatnonzero(ours.predicted != theirs.predicted)

    def named(number: int) -> str:
        return labels[number] if 0 <= number < len(labels) else str(number)

    def told(place: int) -> tuple[str, tuple[str, str]]:
        return named(int(ours.labels[place])), (named(int(ours.predicted[place])), named(int(theirs.predicted[place])))

    return PredictionPair(
        len(ours.ids), "example", len(apart),
        int((right[0] & right[1]).sum()), int((right[0] & ~right[1]).sum()),
        int((~right[0] & right[1]).sum()), int((~right[0] & ~right[1]).sum()),
        ours.scores.shape == theirs.scores.shape and ours.scores.tobytes() == theirs.scores.tobytes(),
        _examples(sides, ours.ids, apart.tolist(), told),
    )  # fmt: skip


def _documents(sides: Sequence[_Side], ours: TextScores, theirs: TextScores) -> PredictionPair | str:
    if not np.array_equal(ours.tokens, theirs.tokens):
        return "they split the documents into different tokens, so their losses cannot be compared"
    apart = np.flatnonzero(ours.nll != theirs.nll)
    order = apart[np.argsort(-np.abs(ours.nll - theirs.nll)[apart], kind="stable")]
    losses = [one.nll / np.maximum(one.tokens, 1) for one in (ours, theirs)]

    def told(place: int) -> tuple[str, tuple[str, str]]:
        return "nats per token", (f"{losses[0][place]:.4g}", f"{losses[1][place]:.4g}")

    lower = [int((ours.nll < theirs.nll).sum()), int((theirs.nll < ours.nll).sum())]
    return PredictionPair(
        len(ours.ids), "document", len(apart), 0, lower[0], lower[1], 0, not len(apart),
        _examples(sides, ours.ids, order.tolist(), told),
    )  # fmt: skip


def _examples(
    sides: Sequence[_Side],
    ids: Sequence[str],
    places: Sequence[int],
    told: Callable[[int], tuple[str, tuple[str, str]]],
) -> tuple[DifferingExample, ...]:
    if not places:
        return ()
    texts: dict[str, tuple[str, ...]] = {}
    for side in sides:
        try:
            kept = read_examples(side.home / EXAMPLES_FILE, "test")
        except LedgerError:
            continue  # texts are for readers: the ids say which examples they are
        texts = dict(zip(kept.ids, kept.texts, strict=True))
        break
    found = []
    for place in places[:SHOWN]:
        label, answers = told(place)
        own = tuple(text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in texts.get(ids[place], ()))
        found.append(DifferingExample(ids[place], label, answers, own))
    return tuple(found)


def _weights(sides: Sequence[_Side]) -> str:
    """Whether the trained weights are the same to the bit, by the sums that runs were closed with."""
    sums = [_sums(side) for side in sides]
    if not all(sums):
        return "not on record: a run keeps its weights' sums once it has finished, with `save_model: true`"
    if sums[0] == sums[1]:
        return "the same to the bit"
    return "different"


def _sums(side: _Side) -> dict[str, str]:
    if side.run.status != FINISHED:
        return {}
    try:
        files = read_sealed(side.run.folder.manifest).get("files")
    except (OSError, ValueError):
        return {}
    known = files.items() if isinstance(files, dict) else ()
    return {name: found for name, found in known if name.startswith("model/") and name.endswith(".safetensors")}
