"""A report names the training samples of its arms, and says whether their luck is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_ledger import STUDY, ArmSpec, MadeLedger, make_study

from fairtune.core.files import read_json, write_json
from fairtune.report.writer import write_report

pytestmark = pytest.mark.usefixtures("undrawn")
FEW = "on its own 8 examples per class (2 classes, 16 in all), shared by all arms. So the luck of seeds is also that of the sample"
FIXED = "All seeds train on the same 20 of 320 examples, shared by all arms. Intervals and p do not count the luck of that one"


@pytest.fixture
def ledger(tmp_path: Path) -> MadeLedger:
    return make_study(
        tmp_path / "runs", {"baseline": ArmSpec([336, 330, 333]), "focal": ArmSpec([340, 333, 338], methods=["focal"])}
    )


def texts(ledger: MadeLedger, examples: Any) -> dict[str, str]:
    file = ledger.runs / STUDY / "study.json"
    plan: Any = read_json(file)
    for arm in plan["arms"].values():
        arm["train"]["examples"] = examples
    write_json(file, plan)
    return {
        kind: path.read_text() for kind, path in write_report(ledger.results()).items() if kind in ("html", "markdown")
    }


@pytest.mark.parametrize(
    ("examples", "used", "words"),
    [({"per_class": 8, "resample": "seed"}, "16 of 320 training", FEW), (20, "20 of 320 training", FIXED)],
)
def test_notes_say_whether_the_luck_of_the_sample_is_counted(
    ledger: MadeLedger, examples: Any, used: str, words: str
) -> None:
    found = texts(ledger, examples)
    assert words in found["html"]
    assert used in found["html"]
    assert words in found["markdown"].replace("\\", "")
    assert found["markdown"].count("shared by all arms") == 2, "with the data, and where it is said how to read"


@pytest.mark.parametrize("examples", [None, 320, 5000])
def test_who_trains_on_everything_has_no_sample(ledger: MadeLedger, examples: int | None) -> None:
    found = texts(ledger, examples)
    assert not any("shared by all arms" in text for text in found.values())
    assert "320 training" in found["html"]


@pytest.mark.parametrize(("examples", "seeds_alone"), [({"per_class": 8, "resample": "seed"}, True), (20, False)])
def test_with_samples_of_their_own_only_seeds_count(ledger: MadeLedger, examples: Any, seeds_alone: bool) -> None:
    texts(ledger, examples)
    results = ledger.results()
    found = results.comparison("focal")
    assert found is not None
    assert (found.found.df == 2) == seeds_alone, "degrees of freedom of three seeds"
    widths = [summary.high - summary.low for summary in [results.summary("baseline")] if summary.high and summary.low]
    texts(ledger, None)
    plain = ledger.results().summary("baseline")
    assert plain.high is not None
    assert plain.low is not None
    assert (widths[0] > plain.high - plain.low) == seeds_alone
