"""The report's section about mistakes: counts over runs, the plainest examples, shares by kind and by length."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_ledger import EXAMPLES, ArmSpec, MadeLedger, make_study
from page_script import without_script

from fairtune.ledger.predictions import (
    EXAMPLES_FILE,
    AboutExamples,
    Examples,
    Predictions,
    write_examples,
    write_predictions,
)
from fairtune.report.content import ReportContent
from fairtune.report.sections.mistakes.content import SHOWN, MistakesSection, read_mistakes
from fairtune.report.sections.mistakes.figure import drawn_arms, groups_svg
from fairtune.report.sections.mistakes.words import matrix, mistake_cells, mistake_heads, mistake_lines
from fairtune.report.writer import write_report

HOSTILE = "<script>alert(1)</script> | `x`"
LABELS = np.arange(EXAMPLES) % 2
IDS = tuple(f"t{i}" for i in range(EXAMPLES))


def predict(made: MadeLedger, arm: str, seed: int, wrong: list[int], validation_wrong: int = 0) -> None:
    """Test predictions that are wrong in some places, and ten validation predictions of which the first are wrong."""
    predicted = LABELS.copy()
    predicted[wrong] = 1 - predicted[wrong]
    chosen = np.array([0, 1] * 5)
    given = np.where(np.arange(10) < validation_wrong, 1 - chosen, chosen)
    splits = {
        "test": Predictions(IDS, LABELS, 3 * np.eye(2, dtype=np.float32)[predicted]),
        "validation": Predictions(tuple(f"v{i}" for i in range(10)), chosen, np.eye(2, dtype=np.float32)[given]),
    }
    write_predictions(made.folder(arm, seed).predictions, splits)


def keep_texts(made: MadeLedger, kept: int = EXAMPLES, kinds: bool = True) -> None:
    texts = tuple((HOSTILE if i == 0 else f"text {i}",) for i in range(kept))
    tokens = (np.arange(kept) % 40 + 3).astype(np.int32)
    test = Examples(IDS[:kept], texts, LABELS[:kept], (None,) * kept, tokens)
    sort = ("first",) * 4 + ("second",) * 5 + (None,) if kinds else (None,) * 10
    names = tuple(f"v{i}" for i in range(10))
    validation = Examples(
        names, tuple((name,) for name in names), np.array([0, 1] * 5), sort, np.full(10, 5, dtype=np.int32)
    )
    about = AboutExamples("key", {"test": EXAMPLES, "validation": 10}, "minilm")
    write_examples(made.runs / "made" / EXAMPLES_FILE, about, {"test": test, "validation": validation})


def made_mistakes(runs: Path) -> MadeLedger:
    """Example 0 is got wrong by all, 1 to 3 by the baseline only, 5 by the arm only, others by one run or another."""
    made = make_study(
        runs, {"baseline": ArmSpec([300, 300, 300]), "arm": ArmSpec([300, 300, 300], methods=[{"bitfit": {}}])}
    )
    for seed in range(3):
        predict(made, "baseline", seed, [0, 1, 2, 3, 20 + seed])
        predict(made, "arm", seed, [0, 5, 30 + seed, *([1] if seed == 0 else [])], validation_wrong=seed)
    keep_texts(made)
    return made


@pytest.fixture(scope="module")
def ledger_of_mistakes(tmp_path_factory: pytest.TempPathFactory) -> MadeLedger:
    return made_mistakes(tmp_path_factory.mktemp("mistakes") / "runs")


@pytest.fixture(scope="module")
def section(ledger_of_mistakes: MadeLedger) -> MistakesSection:
    found = read_mistakes(ledger_of_mistakes.results())
    assert found is not None
    return found


@pytest.fixture(scope="module")
def files(ledger_of_mistakes: MadeLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(ledger_of_mistakes.results()).items()}


def test_counts_are_means_over_runs(section: MistakesSection) -> None:
    baseline, arm = section.arms
    assert (baseline.wrong.mean, baseline.n) == (5, 3)
    assert (arm.wrong.mean, arm.wrong.low, arm.wrong.high) == (pytest.approx(10 / 3), 3, 4)
    assert baseline.false_positives is not None
    assert baseline.false_negatives is not None
    # 0 and 2, and in two runs an even one of 20 to 22, are "no" taken for "yes"
    assert baseline.false_positives.mean == pytest.approx(2 + 2 / 3)
    assert baseline.false_negatives.mean == pytest.approx(2 + 1 / 3)
    assert sum(map(sum, arm.confusion)) == pytest.approx(EXAMPLES)
    assert arm.confusion[0][1] + arm.confusion[1][0] == pytest.approx(arm.wrong.mean)


def test_what_most_runs_get_wrong_comes_first(section: MistakesSection) -> None:
    assert [example.id for example in section.hard] == ["t0", "t1"], "1 by four of six runs, 2 and 3 by just half"
    first, second = section.hard
    assert (first.label, first.predicted, first.wrong) == ("no", "yes", 1)
    assert first.confidence == pytest.approx(np.exp(3) / (np.exp(3) + 1))
    assert second.wrong == pytest.approx(4 / 6)


def test_what_only_one_arm_gets_right_or_wrong(section: MistakesSection) -> None:
    baseline, arm = section.arms
    assert (baseline.gains, baseline.gained) == (None, ())
    assert [example.id for example in arm.gained] == ["t2", "t3", "t1"], "the plainest first"
    assert [example.id for example in arm.lost] == ["t5"]
    assert (arm.gains, arm.losses) == (3, 1)
    assert (arm.gained[2].wrong, arm.gained[2].other_wrong) == (1, pytest.approx(1 / 3))
    assert (arm.lost[0].label, arm.lost[0].predicted) == ("yes", "no")


def test_kinds_are_those_of_the_split_that_has_them(section: MistakesSection) -> None:
    assert section.kinds is not None
    assert section.kinds.split == "validation"
    assert [(group.name, group.n) for group in section.kinds.rows] == [("second", 5), ("first", 4)]
    share = section.kinds.rows[1].shares["arm"]
    assert share.value == pytest.approx((4 + 3 + 2) / 12)
    assert share.low < share.value < share.high


def test_lengths_are_of_the_test_split(section: MistakesSection) -> None:
    assert section.lengths is not None
    assert section.lengths.split == "test"
    assert [group.name for group in section.lengths.rows] == ["3 to 12", "13 to 22", "23 to 32", "33 to 42"]
    assert sum(group.n for group in section.lengths.rows) == EXAMPLES


def test_everything_is_in_page_and_markdown(files: dict[str, str]) -> None:
    for kind in ("html", "markdown"):
        output = files[kind].replace("\u00a0", " ")
        assert "false positives: “no” taken for “yes”" in output
        assert "3.3 (3 to 4)" in output
        assert "taken for “yes” by 100 % of all 6 runs; confidence 95 %" in output
        assert "by 100 % of baseline’s runs, 33 % of arm’s" in output
        assert "Only validation examples have kinds" in output
        assert "second" in output
    assert 'aria-label="Right answers by kind and by length' in files["html"]
    assert json.loads(files["json"])["mistakes"]["hard_total"] == 2


def test_texts_stay_texts(files: dict[str, str]) -> None:
    assert "&lt;script&gt;alert(1)" in without_script(files["html"])
    assert not re.search(r"(?<!\\)<script", files["markdown"])


def test_long_lists_are_cut_and_say_so(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([300, 300]), "arm": ArmSpec([300, 300])})
    for arm in ("baseline", "arm"):
        for seed in range(2):
            predict(made, arm, seed, list(range(40)))
    found = read_mistakes(made.results())
    assert found is not None
    assert (len(found.hard), found.hard_total) == (SHOWN, 40)
    lines = list(mistake_lines(found, 0.95))
    assert "Wrong in most of all 4 runs (5 of 40):" in lines


@pytest.mark.parametrize("content", [None, b"no parquet"])
def test_without_texts_the_rest_is_reported(ledger: MadeLedger, content: bytes | None) -> None:
    if content is not None:
        (ledger.runs / "made" / EXAMPLES_FILE).write_bytes(content)
    found = read_mistakes(ledger.results())
    assert found is not None
    assert (found.kinds, found.lengths, groups_svg(found)) == (None, None, None)
    assert "run it again to write one" in found.notes[0]
    assert found.hard
    assert found.hard[0].texts == ()


def test_texts_of_a_part_are_reported_as_that(ledger: MadeLedger) -> None:
    keep_texts(ledger, kept=50, kinds=False)
    found = read_mistakes(ledger.results())
    assert found is not None
    assert found.kinds is None
    assert found.lengths is not None
    assert sum(group.n for group in found.lengths.rows) == 50
    assert found.notes == (
        "Of the 400 test examples, the texts of 50 were kept, a fixed stratified sample; kinds and lengths are of these, and an "
        "example without a text has its id.",
    )


def test_of_three_classes_the_confusions_are_named(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([300])})
    labels = np.arange(EXAMPLES) % 3
    predicted = np.where(labels == 2, 0, labels)
    scored = Predictions(IDS, labels, np.eye(3, dtype=np.float32)[predicted])
    write_predictions(made.folder("baseline", 0).predictions, {"test": scored})
    results = made.results()
    results.plan["task"]["labels"] = ["red", "green", "blue"]
    found = read_mistakes(results)
    assert found is not None
    assert found.arms[0].false_positives is None
    assert mistake_heads(found)[3] == "most frequent confusions"
    assert mistake_cells(found, found.arms[0])[3] == "“blue” for “red” 133"
    assert matrix(found, found.arms[0]) == [
        ["red", "134", "0", "0"],
        ["green", "0", "133", "0"],
        ["blue", "133", "0", "0"],
    ]


def test_the_reference_is_always_drawn(section: MistakesSection) -> None:
    assert drawn_arms(section) == ["baseline", "arm"]


def test_language_models_and_studies_without_runs_have_no_such_section(
    text_content: ReportContent, make_ledger: Callable[..., MadeLedger]
) -> None:
    assert text_content.sections["mistakes"] is None
    assert read_mistakes(make_ledger({"baseline": ArmSpec([None])}).results()) is None
