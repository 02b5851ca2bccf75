"""The report's pictures of representations: of which run and weights, what is drawn, and the same every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_ledger import EXAMPLES, ArmSpec, MadeLedger, make_study

from fairtune.ledger.events import EventLog
from fairtune.ledger.records import EVENT, write_arrays
from fairtune.report.content import ReportContent
from fairtune.report.sections.representation.content import (
    MOST_ARMS,
    MOST_EXAMPLES,
    RepresentationSection,
    read_representation,
    representation_remarks,
)
from fairtune.report.sections.representation.figure import cloud_svg, on_a_plane
from fairtune.report.writer import write_report

KEPT = 60


def keep(made: MadeLedger, arm: str, seed: int = 0, states: np.ndarray | None = None, step: int = 15) -> None:
    """Vectors in which classes lie apart."""
    if states is None:
        noise = np.random.default_rng(seed).normal(size=(KEPT, 8))
        states = noise + 4 * (np.arange(KEPT) % 2)[:, None]
    folder, rows = made.folder(arm, seed), np.arange(len(states), dtype=np.int32) % EXAMPLES
    write_arrays(folder, "representation", step, {"states": states.astype(np.float16), "rows": rows})
    log = EventLog(folder.events)
    log.write(EVENT, 21, name="representation", step=step, epoch=1)
    log.close()


def made_vectors(runs: Path) -> MadeLedger:
    made = make_study(
        runs, {"baseline": ArmSpec([336, 338]), "<b>arm": ArmSpec([343, 341]), "without": ArmSpec([330, 331])}
    )
    for seed in range(2):
        keep(made, "baseline", seed)
        keep(made, "<b>arm", seed, step=20)
    return made


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> MadeLedger:
    return made_vectors(tmp_path_factory.mktemp("vectors") / "runs")


@pytest.fixture(scope="module")
def files(vectors: MadeLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(vectors.results()).items()}


def read(made: MadeLedger) -> RepresentationSection:
    found = read_representation(made.results())
    assert found is not None
    return found


def test_each_picture_is_of_the_first_seed_and_the_scored_weights(vectors: MadeLedger, files: dict[str, str]) -> None:
    baseline, arm = read(vectors).arms
    assert (baseline.arm, baseline.seed, baseline.step, baseline.examples, baseline.width) == (
        "baseline",
        0,
        15,
        KEPT,
        8,
    )
    assert (arm.arm, arm.step) == ("<b>arm", 20)
    for kind in ("html", "markdown"):
        assert "baseline, seed 0, weights of step 15: 60 test examples, 8 values each" in files[kind]
    assert "fine-tuned model" in files["html"]
    assert "Distances between clusters, their sizes and their shapes mean nothing" in files["html"]


def test_every_example_is_a_dot_and_every_mistake_a_cross(vectors: MadeLedger, files: dict[str, str]) -> None:
    section = read(vectors)
    svg = cloud_svg(section.arms[0], section.labels)
    assert svg in files["html"], "the same every time"
    paths = re.findall(r'<path d="([^"]*)"', svg)
    assert [path.count("h.01") for path in paths] == [KEPT // 2, KEPT // 2, 0]
    assert paths[2].count("M") == section.arms[0].mistakes
    assert svg.count('style="stroke-linecap:') == 2, (
        "an attribute loses against other figures' styles, and no dot is seen"
    )
    assert "<b>arm" not in files["html"]
    assert len(svg) < 4_000


def test_json_has_no_vectors(files: dict[str, str]) -> None:
    answer = json.loads(files["json"])["representation"]
    assert [arm["vectors"] for arm in answer["arms"]] == [None, None]


def test_classes_that_lie_apart_stay_apart() -> None:
    labels = np.arange(80) % 2
    plane = on_a_plane((np.random.default_rng(0).normal(size=(80, 8)) + 6 * labels[:, None]).astype(np.float32))
    nearest = np.argsort(((plane[:, None] - plane[None]) ** 2).sum(-1), axis=1)[:, 1]
    assert (labels[nearest] == labels).mean() == 1


def test_many_arms_and_examples_are_not_all_drawn(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({f"arm-{i}": ArmSpec([330]) for i in range(MOST_ARMS + 2)})
    for i in range(MOST_ARMS + 2):
        keep(made, f"arm-{i}", states=np.random.default_rng(0).normal(size=(MOST_EXAMPLES + 100, 4)))
    found = read(made)
    assert len(found.arms) == MOST_ARMS
    assert found.left_out == (f"arm-{MOST_ARMS}", f"arm-{MOST_ARMS + 1}")
    assert (found.arms[0].examples, found.arms[0].kept) == (MOST_EXAMPLES, MOST_EXAMPLES + 100)


@pytest.mark.parametrize(
    ("states", "problem"),
    [
        (np.full((KEPT, 4), np.nan), "what seed 0 recorded is not finite"),
        (np.ones((KEPT, 4)), "seed 0 has too few different examples"),
        (np.random.default_rng(0).normal(size=(3, 4)), "seed 0 has too few different examples"),
        (None, "what seed 0 recorded cannot be read"),
    ],
)
def test_what_cannot_be_drawn_says_why(ledger: MadeLedger, states: np.ndarray | None, problem: str) -> None:
    keep(ledger, "baseline", states=states)
    if states is None:
        next(ledger.folder("baseline", 0).records.iterdir()).write_bytes(b"")
    found = read(ledger)
    assert (found.arms, found.problems) == ((), {"baseline": problem})
    assert representation_remarks(found) == [f"No picture of baseline: {problem}."]


def test_without_vectors_nothing_is_said(content: ReportContent, written: dict[str, Path]) -> None:
    assert content.sections["representation"] is None
    assert all("t-SNE" not in path.read_text() for path in written.values())
