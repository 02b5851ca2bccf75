"""A watched report is written again when its ledger changes, not before; it ends well, and tells when the study is gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study
from tests.report.test_study_pairs import invoke

from fairtune.core.errors import LedgerError
from fairtune.report import watch
from fairtune.report.watch import LONGEST, RELOAD, StudyWatch, stamp_of


@pytest.fixture
def made(tmp_path: Path) -> MadeLedger:
    return make_study(
        tmp_path / "runs", {"baseline": ArmSpec([336, None]), "fgm": ArmSpec([330, None], methods=[{"fgm": {}}])}
    )


class Rounds:
    """Something happens in each round of waiting; then somebody presses Ctrl-C."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self.happens: Iterator[Callable[[], object]] = iter(happens)
        self.now = 0.0

    def sleep(self, _: float) -> None:
        self.now += LONGEST
        happened = next(self.happens, None)
        if happened is None:
            raise KeyboardInterrupt
        happened()

    def clock(self) -> float:
        return self.now


def watched(made: MadeLedger, lines: list[str], rounds: Rounds) -> StudyWatch:
    return StudyWatch(made.runs, STUDY, ("html", "json"), None, lines.append, rounds.sleep, rounds.clock)


def grow(made: MadeLedger) -> None:
    with made.folder("baseline", 0).events.open("ab") as file:
        file.write(b"\n")


def test_one_line_for_each_change(made: MadeLedger) -> None:
    lines: list[str] = []
    page = made.runs / STUDY / "report" / "index.html"
    reloads: list[bool] = []
    rounds = Rounds(lambda: reloads.append(RELOAD in page.read_text()), lambda: grow(made), lambda: None)
    with pytest.raises(KeyboardInterrupt):
        watched(made, lines, rounds).keep_writing()
    assert len(lines) == 2, "one at first, one for the change, none for the reports themselves"
    assert "2 finished, 2 waiting" in lines[0]
    assert reloads == [True]
    assert 'http-equiv="refresh"' not in page.read_text(), "nobody writes it any more"


def test_a_study_that_goes_is_told_in_a_sentence(made: MadeLedger) -> None:
    rounds = Rounds(lambda: shutil.rmtree(made.runs / STUDY), lambda: None)
    with pytest.raises(LedgerError, match="is gone: it was moved or deleted"):
        watched(made, [], rounds).keep_writing()


def test_a_change_is_seen_by_sizes_and_times_alone(made: MadeLedger) -> None:
    home = made.runs / STUDY
    before = stamp_of(home)
    assert stamp_of(home) == before
    (home / "report").mkdir()
    (home / "report" / "index.html").write_text("x")
    assert stamp_of(home) == before, "its own report is no change"
    os.utime(made.folder("fgm", 0).result, ns=(1, 1))
    assert stamp_of(home) != before
    assert stamp_of(home / "nowhere") == {}


def test_the_verb_ends_with_ctrl_c(made: MadeLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch.StudyWatch, "sleep", staticmethod(stop))
    monkeypatch.setattr(watch.StudyWatch.__init__, "__defaults__", (stop, lambda: 0.0))
    code, shown = invoke("report", STUDY, "--runs", made.runs, "--watch")
    assert code == 0, shown
    assert "2 finished, 2 waiting" in shown
    assert "No longer watched" in shown
