"""What the fine-tuned models make of test examples: the kept vectors of one run per arm, and how to read their pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.analysis.results import LedgerRun, Results
from fairtune.core.errors import LedgerError
from fairtune.ledger.predictions import Predictions
from fairtune.ledger.records import read_records
from fairtune.report.figures.palette import class_colours, hexadecimal

NAME = "representation"
MOST_ARMS, MOST_EXAMPLES = 6, 500
"""Arms that are drawn, the reference and the next ones, and examples in each picture: one takes a second or two."""


@dataclass(frozen=True)
class Vectors:
    """Examples as the model sees them.

    Args:
        states: [examples, width].
        wrong: whether the run got the example wrong.
    """

    states: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    wrong: npt.NDArray[np.bool_]

    def some(self, most: int) -> Vectors:
        """At most so many, that lie evenly among them."""
        rows = np.unique(np.linspace(0, len(self.states) - 1, most).round().astype(np.int64))
        return Vectors(self.states[rows], self.labels[rows], self.wrong[rows])


@dataclass(frozen=True)
class ArmRepresentation:
    """One run of an arm.

    Args:
        step: of the weights, those that were scored.
        examples: that are drawn.
        kept: of which the run kept vectors.
        mistakes: examples among those drawn that the run got wrong.
        vectors: left out of JSON.
    """

    arm: str
    seed: int
    step: int
    examples: int
    kept: int
    width: int
    mistakes: int
    vectors: Vectors | None


@dataclass(frozen=True)
class RepresentationSection:
    """The runs that are drawn.

    Args:
        left_out: arms that have such vectors and are not drawn.
        problems: arms whose vectors cannot be drawn, and why.
    """

    labels: tuple[str, ...]
    arms: tuple[ArmRepresentation, ...]
    left_out: tuple[str, ...]
    problems: dict[str, str]

    def without_vectors(self) -> RepresentationSection:
        """The same without the many numbers, which stand in the runs' folders."""
        return replace(self, arms=tuple(replace(arm, vectors=None) for arm in self.arms))


def read_representation(results: Results) -> RepresentationSection | None:
    """The first finished seed of each arm that kept vectors; None where none did."""
    if results.kind != "classify":
        return None
    order = [results.reference, *(arm for arm in results.arms if arm != results.reference)]
    runs = {arm: run for arm in order if (run := _first(results, arm)) is not None}
    drawn = list(runs)[:MOST_ARMS]
    found, problems = [], {}
    for arm in drawn:
        one = _read(runs[arm])
        if isinstance(one, str):
            problems[arm] = one
        else:
            found.append(one)
    if not runs:
        return None
    labels = tuple(map(str, results.plan["task"]["labels"]))
    return RepresentationSection(labels, tuple(found), tuple(arm for arm in runs if arm not in drawn), problems)


def _first(results: Results, arm: str) -> LedgerRun | None:
    """The first finished run, if it kept vectors."""
    run = next(iter(results.finished(arm)), None)
    kept = run is not None and any(e.get("name") == NAME for e in run.events_of("record"))
    return run if kept else None


def _read(run: LedgerRun) -> ArmRepresentation | str:
    """The vectors of a run, or why they cannot be drawn."""
    try:
        record = read_records(run.folder, NAME)[-1]
        vectors = _vectors(record.arrays, run)
    except (LedgerError, KeyError, IndexError, ValueError):
        return f"what seed {run.seed} recorded cannot be read"
    if not np.isfinite(vectors.states).all():
        return f"what seed {run.seed} recorded is not finite"
    if len(vectors.states) < 5 or vectors.states.std(axis=0).max() < 1e-6:
        return f"seed {run.seed} has too few different examples"
    kept, width = vectors.states.shape
    drawn = vectors.some(MOST_EXAMPLES)
    return ArmRepresentation(
        run.arm, run.seed, record.step, len(drawn.states), kept, width, int(drawn.wrong.sum()), drawn
    )


def _vectors(arrays: dict[str, npt.NDArray[Any]], run: LedgerRun) -> Vectors:
    rows, states = arrays["rows"].astype(np.int64), arrays["states"].astype(np.float32)
    if not isinstance(run.test, Predictions) or states.ndim != 2 or len(states) != len(rows):
        raise ValueError("not the vectors of a classifier")
    labels = run.test.labels[rows]
    return Vectors(states, labels, np.asarray(run.test.predicted[rows] != labels))


READING = (
    "Each picture is of one run’s own fine-tuned model, with the weights that were scored, and of no other: what its last linear "
    "layer is given for each test example, brought to a plane by t-SNE (principal components first, a fixed seed). "
    "Examples that lie close are alike to the model. Distances between clusters, their sizes and their shapes mean nothing; "
    "another seed of t-SNE would arrange them otherwise, and another seed of training is another model."
)


def representation_caption(arm: ArmRepresentation) -> str:
    """What one picture is of."""
    return (
        f"{arm.arm}, seed {arm.seed}, weights of step {arm.step:,}: {_examples(arm)} test examples, {arm.width:,} values each; "
        f"crosses are its {arm.mistakes:,} mistakes among them."
    )


def _examples(arm: ArmRepresentation) -> str:
    return f"{arm.examples:,}" if arm.examples == arm.kept else f"{arm.examples:,} of {arm.kept:,} kept"


def representation_remarks(section: RepresentationSection) -> list[str]:
    """Arms of which there is no picture."""
    remarks = [f"No picture of {arm}: {problem}." for arm, problem in section.problems.items()]
    if section.left_out:
        remarks.append(f"Kept but not drawn, to keep the page small: {', '.join(section.left_out)}.")
    return remarks


def class_key(labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each class with its colour."""
    return [(name, hexadecimal(colour)) for name, colour in zip(labels, class_colours(len(labels)), strict=True)]
