"""A frame of `fairtune watch`: a study as lines of text that fit a terminal, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from fairtune.core.numbers import DASH, share
from fairtune.monitor.fitted_table import FittedColumn, FittedTable, share_lines, shortened, wrapped
from fairtune.monitor.study_view import StudyView
from fairtune.monitor.time_left import duration_text
from fairtune.monitor.watch_tables import NAME, STYLES, arm_table, device_table, log_table, study_tables

STATES = ("finished", "failed", "damaged", "running", "interrupted", "waiting")
"""In the order they are counted up."""
ENDED = ("finished", "failed", "damaged")
LONGEST = 10_000
"""Lines, where a frame need not fit a screen."""
STOPPED = "Nobody works on it: `fairtune run` with its file goes on with it."


def study_frame(view: StudyView, width: int, height: int | None = None, ending: str = "") -> list[Text]:
    """A study in lines.

    Args:
        height: lines that there is room for; None shows all that the view has.
        ending: the last line.
    """
    above = [*headline(view, width), *_verdict_lines(view, width, LONGEST if height is None else 4)]
    below = [Text(shortened(line, width), "dim", no_wrap=True) for line in (_queue_line(view), ending) if line]
    tables = [table for table in study_tables(view) if table.count]
    room = (LONGEST if height is None else height) - len(above) - len(below)
    shares = share_lines([table.wanted for table in tables], [table.least for table in tables], room)
    gaps = sum(shares) + len(tables) + 1 <= room
    lines = list(above)
    for table, given in zip(tables, shares, strict=True):
        if given:
            lines += [Text("")] * gaps + table.lines(width, given, whole=height is None)
    lines += [Text("")] * (gaps and bool(below)) + below
    return lines[:height]


def summary_lines(view: StudyView, width: int) -> list[Text]:
    """A study without its runs, which are listed elsewhere."""
    lines = [*headline(view, width), *_verdict_lines(view, width, LONGEST)]
    for table in (arm_table(view), device_table(view.devices), log_table(view.log)):
        lines += [Text(""), *table.lines(width, LONGEST, whole=True)] if table.count else []
    return lines


def headline(view: StudyView, width: int) -> list[Text]:
    """The study, its state and the time left; its counts; what it is about."""
    state = "every run has ended" if view.state == "finished" else view.state
    if view.state == "running" and view.left is not None:
        state += f", about {duration_text(view.left)} left"
    name = shortened(view.study, max(NAME, width - len(state) - 2), middle=True)
    first = Text.assemble((name, "bold"), ": ", (state, STYLES.get(view.state, "")), no_wrap=True)
    first.truncate(width, overflow="ellipsis")
    lines = [first]
    if view.problem:
        lines += [Text(line, "red", no_wrap=True) for line in wrapped(view.problem, width, 3)]
    if view.total:
        lines.append(_progress_line(view, width))
    if view.about:
        lines.append(Text(shortened(view.about, width), "dim", no_wrap=True))
    if view.state == "stopped":
        lines.append(Text(shortened(STOPPED, width), "yellow", no_wrap=True))
    return lines


def _progress_line(view: StudyView, width: int) -> Text:
    counts = view.counts or {}
    text = f"{sum(counts.get(state, 0) for state in ENDED):,} of {view.total:,} ended: {counts_text(counts)}"
    room = min(24, width - len(text) - 1)
    if room < 8:
        return Text(shortened(text, width), no_wrap=True)
    line = Text(no_wrap=True)
    left = room
    for state in STATES[:4]:
        cells = min(left, round(room * counts.get(state, 0) / view.total))
        line.append("━" * cells, STYLES[state])
        left -= cells
    line.append("─" * left, "dim")
    return line.append(f" {text}")


def counts_text(counts: dict[str, int]) -> str:
    """How many runs are in each state that any is in."""
    return ", ".join(f"{counts[state]:,} {state}" for state in STATES if counts.get(state)) or "none has begun"


def _verdict_lines(view: StudyView, width: int, most: int) -> list[Text]:
    """What the evidence supports once all runs have ended; before, only that this is a peek."""
    verdict = view.verdict
    if verdict.problem:
        text, style = verdict.problem, "yellow"
    elif verdict.peeking:
        text, style = f"{verdict.peeking}. {verdict.note}" if verdict.note else verdict.peeking, "yellow"
    else:
        text, style = verdict.opening or verdict.note, ""
    return [Text(line, style, no_wrap=True) for line in wrapped(text, width, most if not style else min(most, 2))]


def _queue_line(view: StudyView) -> str:
    waiting = (view.counts or {}).get("waiting", 0)
    if not waiting:
        return ""
    queued = [f"{run.arm}/seed-{run.seed}" for run in view.runs if run.state == "waiting"][:3]
    return f"next of {waiting:,} in the queue: {', '.join(queued)}" if queued else f"{waiting:,} in the queue"


def studies_frame(views: Sequence[StudyView], width: int, height: int | None = None, ending: str = "") -> list[Text]:
    """Studies in a table, those that run first."""
    ordered = sorted(views, key=lambda view: (view.state != "running", view.state == "unreadable", view.study))
    columns = [
        FittedColumn("study", [view.study for view in ordered], least=NAME + 4, middle=True),
        FittedColumn(
            "state", [view.state for view in ordered], styles=[STYLES.get(view.state, "") for view in ordered]
        ),
        FittedColumn("ended", [_ended(view) for view in ordered], right=True),
        FittedColumn("runs", [view.problem or counts_text(view.counts or {}) for view in ordered], order=1, least=NAME),
    ]
    below = [Text(shortened(ending, width), "dim", no_wrap=True)] if ending else []
    room = (LONGEST if height is None else height) - len(below)
    return [*FittedTable(columns, len(ordered), 3).lines(width, room), *below][:height]


def _ended(view: StudyView) -> str:
    if not view.total:
        return DASH
    return f"{share(sum((view.counts or {}).get(state, 0) for state in ENDED) / view.total)} %"
