"""The tables of a study in the terminal: arms, runs under way, those that did not finish, devices, the log."""

from __future__ import annotations

from collections.abc import Sequence

from fairtune.analysis.scales import Scale, relative, scale_of
from fairtune.core.numbers import DASH, gigabytes, significant
from fairtune.monitor.fitted_table import FittedColumn, FittedTable
from fairtune.monitor.study_view import ArmView, DeviceView, RunView, StudyView
from fairtune.monitor.time_left import duration_text

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


def study_tables(view: StudyView) -> list[FittedTable]:
    """The tables of a study: arms, runs under way, those that failed, devices, the log, and the latest that ended."""
    counts, scale = view.counts or {}, scale_of(view.metric) if view.metric else None
    problems = [run for run in view.runs if run.state in PROBLEMS]
    ended = [run for run in view.runs if run.state == "finished"]
    return [
        arm_table(view),
        run_table([run for run in view.runs if run.state == "running"], counts.get("running", 0), scale),
        _problem_table(problems, sum(counts.get(state, 0) for state in PROBLEMS)),
        device_table(view.devices),
        log_table(view.log),
        _ended_table(ended, scale),
    ]


def arm_table(view: StudyView) -> FittedTable:
    """Each arm with n, its mean and interval, and its difference to what it is compared with."""
    scale = scale_of(view.metric) if view.metric else None
    arms, busy = view.arms, {run.arm for run in view.runs if run.state == "running"}
    ranks = sorted(range(len(arms)), key=lambda n: (arms[n].against is not None, arms[n].arm not in busy, n))
    # the heading says to what, also where there is no room for the column that names it
    compared = f"to control ({scale.difference})" if scale and not scale.plain else "to control"
    peeking = view.verdict.peeking
    columns = [
        FittedColumn("arm", [arm.arm for arm in arms], least=SHORT_NAME, middle=True),
        FittedColumn("n", [f"{arm.n}/{arm.planned}" for arm in arms], right=True),
        FittedColumn(scale.heading if scale else "mean", [_mean(arm, scale) for arm in arms]),
        FittedColumn(compared, [_difference(arm, scale) for arm in arms], order=1),
        FittedColumn("control", [arm.against or "" for arm in arms], order=3, least=NAME, middle=True),
        FittedColumn(peeking or "verdict", [_word(arm, bool(peeking)) for arm in arms], order=2),
        FittedColumn("seeds", [str(arm.pairs or "") for arm in arms], order=4, right=True),
    ]
    return FittedTable(columns, len(arms), 6, ranks)


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
    if not arm.word:
        return ""
    return f"{arm.word}{f' by {arm.by}' if arm.by else ''}{' so far' if peeking else ''}"


def run_table(runs: Sequence[RunView], count: int, scale: Scale | None) -> FittedTable:
    """Runs under way."""
    score = f"val. {scale.heading}" if scale else "score"
    columns = [
        FittedColumn("under way", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        FittedColumn("state", [run.phase or run.state for run in runs], order=4, least=9, styles=["cyan"] * len(runs)),
        FittedColumn("step", [_of(run.step, run.steps, ",") for run in runs], right=True),
        FittedColumn("epoch", [_of(run.epoch, run.epochs, ".3g") for run in runs], order=6, right=True),
        FittedColumn("loss", [significant(run.loss) for run in runs], order=2, right=True),
        FittedColumn(
            score, [scale.value(run.score) if scale else significant(run.score) for run in runs], 3, right=True
        ),
        FittedColumn("steps/s", [significant(run.speed) for run in runs], order=5, right=True),
        FittedColumn("left", [DASH if run.left is None else duration_text(run.left) for run in runs], 1, right=True),
        FittedColumn("worker", [run.worker or "" for run in runs], order=7),
    ]
    return FittedTable(columns, max(count, len(runs)), 5)


def progress_cells(run: RunView | None) -> tuple[str, str, str]:
    """How far a run is, for a table of all runs: step, loss, time left; dashes unless it is under way."""
    if run is None or run.state != "running":
        return "-", "-", "-"
    left = "-" if run.left is None else duration_text(run.left)
    return _of(run.step, run.steps, ","), significant(run.loss), left


def _of(value: float | None, planned: float | None, how: str) -> str:
    if value is None:
        return DASH
    return f"{value:{how}}" if planned is None else f"{value:{how}}/{planned:{how}}"


def _problem_table(runs: Sequence[RunView], count: int) -> FittedTable:
    styles = [STYLES[run.state] for run in runs]
    columns = [
        FittedColumn("not finished", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        FittedColumn("state", [run.state for run in runs], styles=styles),
        FittedColumn("reason", [run.reason or DASH for run in runs], least=NAME),
    ]
    return FittedTable(columns, max(count, len(runs)), 3)


def device_table(devices: Sequence[DeviceView]) -> FittedTable:
    columns = [
        FittedColumn("worker", [device.worker for device in devices], least=NAME, middle=True),
        FittedColumn("device", [device.device for device in devices], order=4, least=NAME),
        FittedColumn("load %", [_load(device) for device in devices], right=True),
        FittedColumn("memory (GB)", [_memory(device) for device in devices], order=1, right=True),
        FittedColumn(
            "°C", [DASH if one.temperature is None else f"{one.temperature:.0f}" for one in devices], 2, right=True
        ),
        FittedColumn(
            "others", [str(device.others) if device.others else "" for device in devices], order=5, right=True
        ),
        FittedColumn("run", [device.run or "" for device in devices], order=3, least=NAME, middle=True),
        FittedColumn("", [_silence(device) for device in devices], styles=["yellow"] * len(devices)),
    ]
    return FittedTable(columns, len(devices), 3)


def _load(device: DeviceView) -> str:
    return DASH if device.load is None else f"{100 * device.load:.0f}"


def _memory(device: DeviceView) -> str:
    if device.memory_used is None:
        return DASH
    return (
        gigabytes(device.memory_used)
        if device.memory is None
        else (f"{device.memory_used / 1e9:.1f}/{device.memory / 1e9:.1f}")
    )


def _silence(device: DeviceView) -> str:
    if device.fresh:
        return ""
    return "silent" if device.age is None else f"silent for {duration_text(device.age)}"


def log_table(log: Sequence[tuple[str, str]]) -> FittedTable:
    columns = [
        FittedColumn("log", [who for who, _ in log], least=NAME, middle=True),
        FittedColumn("", [text for _, text in log], least=NAME),
    ]
    return FittedTable(columns, len(log), 3, list(reversed(range(len(log)))), counted=False)


def _ended_table(runs: Sequence[RunView], scale: Scale | None) -> FittedTable:
    on = "val. " if any(run.split == "validation" for run in runs) else ""
    columns = [
        FittedColumn("ended lately", [f"{run.arm}/seed-{run.seed}" for run in runs], least=NAME + 4, middle=True),
        FittedColumn(
            "score" if scale is None else f"{on}{scale.heading}", [_score(run, scale) for run in runs], right=True
        ),
        FittedColumn("took", [DASH if run.seconds is None else f"{run.seconds:,.0f} s" for run in runs], right=True),
    ]
    return FittedTable(columns, len(runs), 3, counted=False)


def _score(run: RunView, scale: Scale | None) -> str:
    return significant(run.score) if scale is None else scale.value(run.score)
