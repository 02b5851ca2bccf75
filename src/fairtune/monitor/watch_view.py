"""A frame of `fairtune watch`: a study as lines of text that fit a terminal, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from fairtune.core.numbers import DASH, gigabytes, share, significant
from fairtune.monitor.fitted_table import Column, Section, share_lines, shortened, wrapped
from fairtune.monitor.study_view import ArmView, DeviceView, RunView, StudyView
from fairtune.monitor.time_left import duration_text
from fairtune.settings.scales import Scale, relative, scale_of

STATES = ("finished", "failed", "damaged", "running", "interrupted", "waiting")
"""In the order they are counted up."""
ENDED = ("finished", "failed", "damaged")
PROBLEMS = ("failed", "damaged", "interrupted")
STYLES = {
    "running": "cyan",
    "finished": "green",
    "failed": "red",
    "damaged": "red",
    "unreadable": "red",
    "interrupted": "yellow",
    "stopped": "yellow",
}
"""Of the states of runs and studies."""
NAME, SHORT_NAME = 12, 8
"""Cells that names may be shortened to."""
LONGEST = 10_000
"""Lines, where a frame need not fit a screen."""
STOPPED = "Nobody works on it: `fairtune run` with its file goes on with it."


def study_frame(view: StudyView, width: int, height: int | None = None, ending: str = "") -> list[Text]:
    """A study in lines.

    Args:
        height: lines that there is room for; None shows all that the view has.
        ending: the last line.
    """
    above = [*headline(view, width), *_verdict_lines(view, width)]
    below = [Text(shortened(line, width), "dim", no_wrap=True) for line in (_queue_line(view), ending) if line]
    sections = [section for section in study_sections(view) if section.count]
    room = (LONGEST if height is None else height) - len(above) - len(below)
    shares = share_lines([section.wanted for section in sections], [section.least for section in sections], room)
    gaps = sum(shares) + len(sections) + 1 <= room
    lines = list(above)
    for section, lines_given in zip(sections, shares, strict=True):
        if lines_given:
            lines += [Text("")] * gaps + section.lines(width, lines_given)
    lines += [Text("")] * (gaps and bool(below)) + below
    return lines[:height]


def headline(view: StudyView, width: int) -> list[Text]:
    """The study, its state and the time left; its counts; what it is about."""
    state = "every run has ended" if view.state == "finished" else view.state
    if view.state == "running" and view.left is not None:
        state += f", about {duration_text(view.left)} left"
    if view.reading < 1:
        state += f", reading the ledger ({100 * view.reading:.0f} %)"
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


def _verdict_lines(view: StudyView, width: int) -> list[Text]:
    """What the evidence supports once all runs have ended; before, only that this is a peek."""
    verdict = view.verdict
    if verdict.problem:
        return [Text(line, "yellow", no_wrap=True) for line in wrapped(verdict.problem, width, 2)]
    if verdict.peeking:
        text = f"{verdict.peeking}. {verdict.note}" if verdict.note else verdict.peeking
        return [Text(line, "yellow", no_wrap=True) for line in wrapped(text, width, 2)]
    return [Text(line, no_wrap=True) for line in wrapped(verdict.opening, width, 4)]


def _queue_line(view: StudyView) -> str:
    waiting = (view.counts or {}).get("waiting", 0)
    if not waiting:
        return ""
    queued = [f"{run.arm}/seed-{run.seed}" for run in view.runs if run.state == "waiting"][:3]
    return f"next of {waiting:,} in the queue: {', '.join(queued)}" if queued else f"{waiting:,} in the queue"


def study_sections(view: StudyView) -> list[Section]:
    """The tables of a study: arms, runs under way, those that failed, devices, the log, and the latest that ended."""
    counts, scale = view.counts or {}, scale_of(view.metric) if view.metric else None
    problems = [run for run in view.runs if run.state in PROBLEMS]
    ended = [run for run in view.runs if run.state == "finished"]
    return [
        arm_section(view, scale),
        run_section([run for run in view.runs if run.state == "running"], counts.get("running", 0), scale),
        _problem_section(problems, sum(counts.get(state, 0) for state in PROBLEMS)),
        _device_section(view.devices),
        _log_section(view.log),
        _ended_section(ended, scale),
    ]


def arm_section(view: StudyView, scale: Scale | None) -> Section:
    """Each arm with n, its mean and interval, and its difference to what it is compared with."""
    arms, busy = view.arms, {run.arm for run in view.runs if run.state == "running"}
    ranks = sorted(range(len(arms)), key=lambda n: (arms[n].against is not None, arms[n].arm not in busy, n))
    compared = f"difference ({scale.difference})" if scale and not scale.plain else "difference"
    peeking = view.verdict.peeking
    columns = [
        Column("arm", [arm.arm for arm in arms], least=SHORT_NAME, middle=True),
        Column("n", [f"{arm.n}/{arm.planned}" for arm in arms], right=True),
        Column(scale.heading if scale else "mean", [_mean(arm, scale) for arm in arms]),
        Column(compared, [_difference(arm, scale) for arm in arms], order=1),
        Column("to", [arm.against or "" for arm in arms], order=3, least=NAME, middle=True),
        Column(peeking or "verdict", [_word(arm, bool(peeking)) for arm in arms], order=2),
        Column("seeds", [str(arm.pairs) if arm.against else "" for arm in arms], order=4, right=True),
    ]
    return Section(columns, len(arms), 6, ranks)


def _mean(arm: ArmView, scale: Scale | None) -> str:
    """Never without its interval, nor without its n where that is not the one beside it."""
    if arm.mean is None:
        return DASH
    show = scale.value if scale else significant
    interval = "1 run" if arm.low is None or arm.high is None else f"{show(arm.low)}, {show(arm.high)}"
    return f"{show(arm.mean)} [{interval}]" + (f" of {arm.counted}" if arm.counted < arm.n else "")


def _difference(arm: ArmView, scale: Scale | None) -> str:
    if arm.difference is None:
        return DASH if arm.against else ""
    show = scale.signed if scale else significant
    low, high = arm.difference_low, arm.difference_high
    interval = "1 seed" if low is None or high is None else f"{show(low)}, {show(high)}"
    text = f"{show(arm.difference)} [{interval}]"
    if scale and scale.plain and arm.mean is not None:
        text += f" {relative(arm.difference, arm.mean - arm.difference)}"
    return text


def _word(arm: ArmView, peeking: bool) -> str:
    """The verdict; while runs are to come, never as if it were the last word."""
    return f"{arm.word} so far" if arm.word and peeking else arm.word or ""


def run_section(runs: Sequence[RunView], count: int, scale: Scale | None) -> Section:
    """Runs under way."""
    score = f"val. {scale.heading}" if scale else "score"
    columns = [
        Column("under way", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        Column("state", [run.phase or run.state for run in runs], order=4, least=9, styles=["cyan"] * len(runs)),
        Column("step", [_of(run.step, run.steps, ",") for run in runs], right=True),
        Column("epoch", [_of(run.epoch, run.epochs, ".3g") for run in runs], order=6, right=True),
        Column("loss", [significant(run.loss) for run in runs], order=2, right=True),
        Column(score, [scale.value(run.score) if scale else significant(run.score) for run in runs], 3, right=True),
        Column("steps/s", [significant(run.speed) for run in runs], order=5, right=True),
        Column("left", [DASH if run.left is None else duration_text(run.left) for run in runs], 1, right=True),
        Column("worker", [run.worker or "" for run in runs], order=7),
    ]
    return Section(columns, max(count, len(runs)), 5)


def _of(value: float | None, planned: float | None, how: str) -> str:
    if value is None:
        return DASH
    return f"{value:{how}}" if planned is None else f"{value:{how}}/{planned:{how}}"


def _problem_section(runs: Sequence[RunView], count: int) -> Section:
    styles = [STYLES[run.state] for run in runs]
    columns = [
        Column("not finished", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        Column("state", [run.state for run in runs], styles=styles),
        Column("reason", [run.reason or DASH for run in runs], least=NAME),
    ]
    return Section(columns, max(count, len(runs)), 3)


def _device_section(devices: Sequence[DeviceView]) -> Section:
    columns = [
        Column("worker", [device.worker for device in devices], least=NAME, middle=True),
        Column("device", [device.device for device in devices], order=4, least=NAME),
        Column("load %", [_load(device) for device in devices], right=True),
        Column("memory (GB)", [_memory(device) for device in devices], order=1, right=True),
        Column("°C", [DASH if one.temperature is None else f"{one.temperature:.0f}" for one in devices], 2, right=True),
        Column("others", [str(device.others) if device.others else "" for device in devices], order=5, right=True),
        Column("run", [device.run or "" for device in devices], order=3, least=NAME, middle=True),
        Column("", [_silence(device) for device in devices], styles=["yellow"] * len(devices)),
    ]
    return Section(columns, len(devices), 3)


def _load(device: DeviceView) -> str:
    return DASH if device.load is None else f"{100 * device.load:.0f}"


def _memory(device: DeviceView) -> str:
    if device.memory_used is None:
        return DASH
    return gigabytes(device.memory_used) if device.memory is None else (
        f"{device.memory_used / 1e9:.1f}/{device.memory / 1e9:.1f}"
    )


def _silence(device: DeviceView) -> str:
    if device.fresh:
        return ""
    return "silent" if device.age is None else f"silent for {duration_text(device.age)}"


def _log_section(log: Sequence[tuple[str, str]]) -> Section:
    columns = [
        Column("log", [who for who, _ in log], least=NAME, middle=True),
        Column("", [text for _, text in log], least=NAME),
    ]
    return Section(columns, len(log), 3, list(reversed(range(len(log)))), counted=False)


def _ended_section(runs: Sequence[RunView], scale: Scale | None) -> Section:
    columns = [
        Column("ended lately", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        Column("score" if scale is None else scale.heading, [_score(run, scale) for run in runs], right=True),
        Column("took", [DASH if run.seconds is None else f"{run.seconds:,.0f} s" for run in runs], right=True),
    ]
    return Section(columns, len(runs), 3, counted=False)


def _score(run: RunView, scale: Scale | None) -> str:
    return significant(run.score) if scale is None else scale.value(run.score)


def studies_frame(views: Sequence[StudyView], width: int, height: int | None = None, ending: str = "") -> list[Text]:
    """Studies in a table, those that run first."""
    ordered = sorted(views, key=lambda view: (view.state != "running", view.state == "unreadable", view.study))
    columns = [
        Column("study", [view.study for view in ordered], least=NAME + 4, middle=True),
        Column("state", [view.state for view in ordered], styles=[STYLES.get(view.state, "") for view in ordered]),
        Column("ended", [_ended(view) for view in ordered], right=True),
        Column("runs", [view.problem or counts_text(view.counts or {}) for view in ordered], order=1, least=NAME),
    ]
    below = [Text(shortened(ending, width), "dim", no_wrap=True)] if ending else []
    room = (LONGEST if height is None else height) - len(below)
    return [*Section(columns, len(ordered), 3).lines(width, room), *below][:height]


def _ended(view: StudyView) -> str:
    if not view.total:
        return DASH
    return f"{share(sum((view.counts or {}).get(state, 0) for state in ENDED) / view.total)} %"
