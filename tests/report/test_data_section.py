"""The report's section about the data: what the ledger's card says, in every file, in studies old and new."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_ledger import STUDY, ArmSpec, MadeLedger, make_study
from page_script import without_script
from tests.tasks.test_duplicates import SMALL, files

from fairtune.core.files import read_json, read_sealed, write_json
from fairtune.ledger.data_card import DataCard
from fairtune.report.sections.data.content import read_data, split_rows
from fairtune.report.writer import write_report
from fairtune.tasks.card.builder import card_of

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def ledger(tmp_path: Path) -> MadeLedger:
    """One arm will do: the data are the same for all."""
    return make_study(tmp_path / "runs", {"baseline": ArmSpec([336])})


@pytest.fixture
def card(tmp_path: Path) -> DataCard:
    return replace(card_of(files(tmp_path, **SMALL)), fingerprint="f" * 64)


def keep(ledger: MadeLedger, content: Any) -> None:
    write_json(ledger.runs / STUDY / "data.json", content)


def change_plan(ledger: MadeLedger, **fields: Any) -> None:
    file = ledger.runs / STUDY / "study.json"
    plan = read_json(file)
    assert plan is not None
    task = {**plan["task"], **fields.pop("task", {})}
    write_json(file, {**plan, **fields, "task": task})


def texts(ledger: MadeLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(ledger.results()).items()}


def test_the_card_is_in_every_file(ledger: MadeLedger, card: DataCard) -> None:
    keep(ledger, card.as_json())
    found = texts(ledger)
    for kind in ("html", "markdown"):
        shown = found[kind].replace("\u00a0", " ")
        for part in (
            "50.0 %",
            "1 of 3",
            "33.3 %",
            "Disputed",
            "several labels",
            card.splits["train"].hash[:12],
            "n = 8",
        ):
            assert part in shown, (kind, part)
    assert "<code>dedupe: true</code>" in found["html"]
    assert DataCard.from_json(json.loads(found["json"])["data"]["card"]) == card


def test_a_study_without_a_card_says_so(ledger: MadeLedger) -> None:
    for text in (text for kind, text in texts(ledger).items() if kind != "json"):
        assert "This study was recorded without a data card." in text


def test_hashes_are_reported_even_without_a_card(ledger: MadeLedger) -> None:
    change_plan(ledger, task={"hashes": {"train": "0123456789abcdef", "test": "fedcba9876543210"}})
    for text in (text for kind, text in texts(ledger).items() if kind != "json"):
        assert "0123456789ab" in text
        assert "fedcba987654" in text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"problem": "DataError: the cache cannot be used"},
            "There is no data card: DataError: the cache cannot be used.",
        ),
        ({"task": "half a card"}, "data.json is not what was written"),
    ],
)
def test_a_card_that_could_not_be_made_or_read_is_reported(ledger: MadeLedger, content: Any, expected: str) -> None:
    keep(ledger, content)
    found = texts(ledger)
    assert expected in found["html"]
    assert expected in found["markdown"].replace("\\", "")


def test_a_card_of_other_data_is_not_shown(ledger: MadeLedger, card: DataCard) -> None:
    keep(ledger, replace(card, fingerprint="0" * 64).as_json())
    section = read_data(ledger.results())
    assert section.card is None
    assert section.problem == "data.json describes other data than the newest plan's"


def test_allowed_contamination_is_at_the_top(ledger: MadeLedger, card: DataCard) -> None:
    change_plan(ledger, notes=["3 of the 20 test texts (15.0 %) are in the training split. The study allows it."])
    keep(ledger, card.as_json())
    found = texts(ledger)
    top = found["html"].split("<nav")[0].replace("\u00a0", " ")
    assert "Contaminated</strong>: 3 of the 20 test texts (15.0 %)" in top
    assert "**Contaminated**: 3 of the 20 test texts (15.0 %)" in found["markdown"]
    assert json.loads(found["json"])["data"]["notes"] != []


def test_deduplication_is_reported(ledger: MadeLedger, tmp_path: Path) -> None:
    card = replace(card_of(files(tmp_path, **SMALL), dedupe=True), fingerprint="f" * 64)
    keep(ledger, card.as_json())
    assert "</code> took out 5 training rows (1 also in the test split" in texts(ledger)["html"]


def test_hostile_texts_stay_text(ledger: MadeLedger, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> | `x` **y**"
    made = {**SMALL, "train": [*SMALL["train"], (hostile, "no"), (hostile, "yes")]}
    keep(ledger, replace(card_of(files(tmp_path, **made)), fingerprint="f" * 64).as_json())
    found = texts(ledger)
    assert "&lt;script&gt;alert(1)" in without_script(found["html"])
    assert "\\<script\\>alert(1)\\</script\\> \\| \\`x\\`" in found["markdown"]


def test_of_very_many_classes_the_largest_are_shown(card: DataCard) -> None:
    classes = {f"c{i}": i for i in range(100)}
    many = {name: replace(split, classes=classes, rows=4950) for name, split in card.splits.items()}
    rows = split_rows(replace(card, splits=many))
    names = [row[0] for row in rows if "class" in row[0]]
    assert len(names) == 13
    assert (names[0], names[-1]) == ("class c99", "88 other classes")


def test_recording_a_plan_keeps_the_card_and_never_fails_because_of_it(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.execution import study_files
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    source = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": {"baseline": {}}}
    plan = make_plan(load_study(source))
    study_files.record_plan(plan, tmp_path)
    kept = DataCard.from_json(read_sealed(tmp_path / "data.json"))
    assert kept.fingerprint == plan.task.fingerprint
    assert kept.splits["train"].rows == 200

    def broken(**_: Any) -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr(study_files, "card_of", broken)
    study_files.record_plan(plan, tmp_path)
    assert read_sealed(tmp_path / "data.json") == {"problem": "RuntimeError: no idea"}
