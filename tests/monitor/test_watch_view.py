"""Frames of a study in the terminal: they fit, the most important comes first, and no verdict stands alone before the end."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Group
from rich.text import Text
from tests.hostile import ALL, NAME, raw_codes
from tests.monitor.terminal_views import made_view

from fairtune.core.console import Console
from fairtune.monitor.fitted_table import share_lines, shortened, wrapped
from fairtune.monitor.study_view import ArmView, RunView, StudyView, VerdictView
from fairtune.monitor.watch_view import studies_frame, study_frame

LONG = "an-arm-whose-name-says-everything-that-was-changed-in-it-" * 4
NAMES = [
    ("oelm-freeze", "focal"),
    ("تجربة-طويلة-جدا", "👩‍👩‍👧 ❤️ 日本語の腕"),
    (f"{LONG}a", f"{LONG}b"),
    (NAME, ALL),
]


def printed(lines: list[Text], width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(Group(*lines))
    return out.getvalue()


@pytest.mark.parametrize("names", NAMES, ids=["plain", "Arabic and emoji", "long", "hostile"])
@pytest.mark.parametrize(("width", "height"), [(40, 10), (60, 24), (80, 24), (120, 24), (200, 60), (80, None)])
def test_a_frame_fits_and_keeps_to_its_lines(names: tuple[str, str], width: int, height: int | None) -> None:
    view = made_view(names, study=names[1], log=((names[0], ALL), (names[1], "so it is")), problem=names[0])
    lines = study_frame(view, width, height, "Ctrl-C leaves")
    assert max(cell_len(line.plain) for line in lines) <= width
    assert height is None or len(lines) <= height
    shown = printed(lines, width)
    assert len(shown.splitlines()) == len(lines), "no line is broken in two"
    assert raw_codes(shown) == []


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_each_width_shows_what_counts(width: int) -> None:
    shown = printed(study_frame(made_view(), width, 24), width)
    for words in (
        "movie-reviews-demo: running, about 12 min left",
        "9 of 15 ended: 8 finished, 1 failed, 2 running, 4 waiting",
        "peeking: 3 of 5 seeds",
        "4/5",
        "84.20 [83.10, 85.30]",
        "−20.10 [−23.00, −17.20]",
        "120/400",
        "0.412",
        "66.00",
        "90 s",
        "the loss is nan at step 3",
        "silent for 5 min",
        "next of 4 in the queue: baseline/seed-4",
    ):
        assert words in shown, words


def test_there_is_more_where_there_is_room() -> None:
    shown = printed(study_frame(made_view(), 200, 60), 200)
    for words in ("tokenising, 3,000 of 20,000", "0.9/3", "3.21", "cpu-1", "3.0/8.0", "67", "A100", "worse so far"):
        assert words in shown, words


def test_no_verdict_stands_alone_before_the_end() -> None:
    for width in (60, 80, 120, 200):
        before = printed(study_frame(made_view(), width, None), width)
        assert not re.search(r"worse(?! so far)|better", before)
        assert "peeking: 3 of 5 seeds" in before
    ended = replace(made_view(), state="finished", verdict=VerdictView("focal is better than baseline.", "", 5, 5))
    after = printed(study_frame(ended, 200), 200)
    assert "focal is better than baseline." in after
    assert "worse" in after
    assert not re.search("so far|peeking", after)


def test_of_many_arms_the_reference_and_those_under_way_are_shown_and_the_rest_is_counted() -> None:
    arms = tuple(ArmView(f"arm-{n}", n, 0, 5, {"waiting": 5}, against="arm-0" if n else None) for n in range(200))
    runs = (RunView("arm-150", 0, 750, "running", 3, 10),)
    view = StudyView("large", "running", total=1000, counts={"running": 1, "waiting": 999}, arms=arms, runs=runs)
    shown = [line.plain.split() for line in study_frame(view, 80, 24)]
    names = [words[0] for words in shown if words and words[0].startswith("arm-")]
    assert names[0] == "arm-0"
    assert "arm-150" in names
    assert names[1] == "arm-1", "in the study's order"
    more = next(words for words in shown if words[:1] == ["and"])
    assert int(more[1]) + len([name for name in names if "/" not in name]) == 200
    assert len(study_frame(view, 80)) > 200


def test_many_runs_and_failures_leave_room_for_each_other() -> None:
    runs = [RunView("a", seed, seed, "running", 3, 10, phase="training") for seed in range(40)]
    runs += [RunView("b", seed, seed, "failed", reason=f"it broke at {seed}") for seed in range(40)]
    counts = {"running": 40, "failed": 300}
    shown = printed(study_frame(made_view(runs=tuple(runs), counts=counts, total=340), 100, 24), 100)
    for words in ("a/seed-0", "b/seed-0", "it broke at 0", "cpu-0", "the loss is nan", "84.20"):
        assert words in shown
    assert re.search(r"and 29\d more", shown), "the counts know of failures that the view does not list"


def test_a_look_at_all_shows_reasons_whole() -> None:
    reason = " ".join(f"word{n}" for n in range(60))
    view = made_view(runs=(RunView("a", 0, 0, "failed", reason=reason),))
    shown = printed(study_frame(view, 80), 80)
    assert " ".join(re.findall(r"word\d+", shown)) == reason
    assert "word59" not in printed(study_frame(view, 80, 24), 80)


def test_a_figure_says_of_how_many_runs_it_is() -> None:
    arms = (
        ArmView("one", 0, 1, 5, {"finished": 1}, 1, 0.5),
        ArmView("behind", 1, 4, 5, {"finished": 4}, 3, 0.6, 0.5, 0.7, "one", 1, 0.1),
    )
    shown = printed(study_frame(made_view(arms=arms), 120), 120)
    assert "50.00 [1 run]" in shown
    assert "60.00 [50.00, 70.00] of 3" in shown
    assert "+10.00 [1 seed]" in shown


def test_a_perplexity_is_shown_as_it_is() -> None:
    arm = ArmView("b", 1, 3, 5, {"finished": 3}, 3, 4.4, 4.3, 4.5, "a", 3, 0.4, 0.3, 0.5)
    shown = printed(study_frame(made_view(metric="perplexity", arms=(arm,)), 120), 120)
    assert "4.400 [4.300, 4.500]" in shown
    assert "+0.4000 [+0.3000, +0.5000] +10.0 %" in shown


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "stopped"}, "Nobody works on it"),
        ({"state": "unreadable", "problem": "study.json is torn"}, "study.json is torn"),
        ({"state": "finished", "verdict": VerdictView(problem="no test scores")}, "every run has ended"),
        ({"verdict": VerdictView(problem="no test scores")}, "no test scores"),
        ({"metric": None}, "0.842 [0.831, 0.853]"),
    ],
)
def test_the_state_of_a_study_is_told(changes: dict[str, object], words: str) -> None:
    assert words in printed(study_frame(made_view(**changes), 100, 24), 100)


def test_a_study_of_which_nothing_is_known_has_a_frame() -> None:
    assert printed(study_frame(StudyView("s", "planned"), 80, 24)) == "s: planned\n"


def test_studies_are_listed_those_that_run_first() -> None:
    views = [
        StudyView("a", "finished", counts={"finished": 4}, total=4),
        StudyView(ALL, "unreadable", problem="of another version"),
        made_view(),
    ]
    lines = studies_frame(views, 80, 24)
    shown = printed(lines, 80)
    assert [line.plain.split()[0] for line in lines][:3] == ["study", "movie-reviews-demo", "a"]
    assert "of another version" in shown
    assert "100.0 %" in shown
    assert "60.0 %" in shown
    assert raw_codes(shown) == []
    assert len(studies_frame([made_view()] * 100, 60, 10)) == 10


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 4, "abc…"),
        ("日本語", 4, "日…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("a\x1bb", 9, r"a\x1bb"),
    ],
)
def test_a_text_is_shortened_by_cells(text: str, width: int, expected: str) -> None:
    assert shortened(text, width) == expected


def test_a_name_keeps_its_end() -> None:
    assert shortened("oelm-freeze/seed-12", 13, middle=True) == "oelm-f…eed-12"


def test_a_text_is_wrapped_by_cells() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("one two three", 8, 1) == ["one two…"]
    assert wrapped("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrapped("", 3) == []


@pytest.mark.parametrize(
    ("wanted", "room", "given"),
    [([10, 10], 20, [10, 10]), ([10, 10], 9, [6, 3]), ([10, 3], 20, [10, 3]), ([9, 9, 9], 7, [7, 0, 0]), ([5], 0, [0])],
)
def test_lines_are_shared(wanted: list[int], room: int, given: list[int]) -> None:
    assert share_lines(wanted, [6, 3, 3][: len(wanted)], room) == given
