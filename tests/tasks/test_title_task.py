"""The task `titles`: made titles train, the mirror's judged ones are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tasks.made_mirror import make_titles, write_split

from fairtune.core.errors import DataError
from fairtune.tasks import load_task
from fairtune.tasks.titles import task as title_task


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(tmp_path))
    monkeypatch.setattr(title_task, "ROWS", 100)
    return make_titles(tmp_path)


@pytest.mark.usefixtures("mirror")
def test_made_titles_train_and_judged_ones_are_reported() -> None:
    task = load_task("titles")
    assert (task.metric, task.labels) == ("f1", ("wrong", "correct"))
    made = len(task.splits["train"]) + len(task.splits["validation"])
    assert made == 100
    assert task.splits["test"].texts[3] == ("Judged 3",)
    assert task.splits["test"].labels.tolist() == [0, 1] * 10
    assert "100 titles made of some_source, seed 0; reported on citeseerx" in task.source
    assert load_task("titles").fingerprint == task.fingerprint


def test_a_title_that_is_reported_is_not_trained_on(mirror: Path) -> None:
    made = [{"title": text, "label": 1} for (text,) in load_task("titles").splits["train"].texts[:5]]
    others = [{"title": f"Judged {i}", "label": i % 2} for i in range(20)]
    write_split(mirror, "titles", "citeseerx", [*made, *others])
    task = load_task("titles")
    texts = {name: {text for (text,) in split.texts} for name, split in task.splits.items()}
    assert not texts["train"] & texts["test"]
    assert len(task.splits["test"]) == 25
    assert "removed" in task.source


def test_other_correct_titles_or_other_makers_make_another_task(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_task("titles").fingerprint
    more = [{"title": f"On the {a} of the {b}"} for a in ("art", "use", "cost") for b in ("graph", "query", "sensor")]
    write_split(mirror, "titles", "more", more)
    second = load_task("titles").fingerprint
    assert second != first
    monkeypatch.setattr(title_task, "SEED", 1)
    assert load_task("titles").fingerprint not in (first, second)


@pytest.mark.parametrize("absent", ["mirror", "judged", "correct"])
def test_without_its_files_the_ways_out_are_named(mirror: Path, absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent == "mirror":
        monkeypatch.delenv("FAIRTUNE_MIRROR")
    else:
        (mirror / "titles" / ("citeseerx.jsonl.gz" if absent == "judged" else "some_source.jsonl.gz")).unlink()
    with pytest.raises(
        DataError, match=r"names no folder with titles/citeseerx\.jsonl\.gz.*make-titles OUT --from FILE"
    ):
        load_task("titles")
