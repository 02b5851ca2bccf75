"""Time and size: the timing experiment beside the bounds that operations set, what runs took, parameters and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.arm_pairs import SIMPLE
from fairtune.analysis.cut_batches import cut_notes
from fairtune.analysis.results import Results
from fairtune.analysis.run_conditions import list_texts
from fairtune.analysis.step_bounds import WORK
from fairtune.analysis.timing_file import comparison_json, mean_times, step_curve
from fairtune.analysis.timing_words import aa_sentence, effort_sentence, implausible_sentences, share_of_bound
from fairtune.analysis.timings import PARTS, StudyTiming
from fairtune.core.markdown import (
    heading,
    items,
    plain,
    prose,
    table,
)
from fairtune.core.numbers import DASH, gigabytes, megabytes, millions, plural, ratio, share, significant, whole
from fairtune.ledger.timings import WARM_UP, format_seconds, read_sessions
from fairtune.report.content import ArmRow, Evidence, Header, ReportContent, RunSpread, Versus
from fairtune.report.figures.widths import both_widths
from fairtune.report.machine import Machine
from fairtune.report.section import ReportSection
from fairtune.report.sections.comparisons.worth import expected_text

TIME_HEADS = (
    "arm", "seconds per step", "against", "ratio", "saves (%)", "gap per step (ms)", "bound: lowest ratio allowed",
    "MFLOP per token",
)  # fmt: skip
SIZE_HEADS = (
    "arm", "n", "trainable", "frozen", "trainable %", "gradients and optimizer state saved (MB)", "peak memory (GB)",
)  # fmt: skip
OWN_HEADS = (
    "arm", "n", "total time", "per epoch", "per step (ms)", "validation", "GPU use (%)", "CV of step times (%)",
)  # fmt: skip
OWN_TIMES = (
    "Each run was timed on its own, so do not compare these times. Times that are compared come from `fairtune time`, in which "
    "the arms take turns."
)
OwnTimes = dict[str, dict[str, Any]]
UNTIMED = (
    "The arms were not timed against each other, so their times are not compared. `fairtune time` with the study's file "
    "does it: all arms "
    "in one process, stepped in turns; `time: true` in the file makes it a part of the study."
)


@dataclass(frozen=True)
class TimeAndSize:
    """What the section has besides the rows.

    Args:
        timing: None where the arms were not timed.
        own: what runs took, by arm: means over runs, and the median step along training; without arms that left no times.
        notes: how to read the times.
        own_notes: how to read what runs took.
    """

    timing: StudyTiming | None
    own: OwnTimes
    notes: tuple[str, ...]
    own_notes: tuple[str, ...]


def gather(evidence: Evidence) -> TimeAndSize:
    timing = evidence.results.timing
    compared = [row.versus for row in evidence.rows if row.versus is not None and row.versus.role != SIMPLE]
    return TimeAndSize(
        timing,
        own_times(evidence.results),
        (*timing_notes(timing), *_lost(evidence), *bound_notes(compared)),
        (*own_time_notes(evidence.header, evidence.machine), *cut_notes(evidence.results), *_unlike(evidence)),
    )


def own_times(results: Results) -> OwnTimes:
    """What runs took, by arm; nothing of arms whose runs would stand next to those of unlike hardware."""
    found = {}
    for arm in results.arms:
        runs = results.clocked(arm)
        if (means := mean_times([run.times for run in runs])) is not None:
            found[arm] = {**means, "step_curve": step_curve(runs)}
    return found


def markdown(found: TimeAndSize, report: ReportContent) -> Iterator[str]:
    rows = [row for row in report.rows if not row.simple]  # what is fitted at once has no steps
    yield from heading("Time and size")
    yield from table(TIME_HEADS, [_time_cells(row) for row in rows])
    yield ""
    yield from items(map(prose, found.notes))
    yield ""
    if found.timing is not None and any(time.parts for time in found.timing.arms.values()):
        heads = ["of a step (ms)", *PARTS, "rest"]
        parts = {arm: time.parts for arm, time in found.timing.arms.items() if time.parts}
        yield from table(heads, [[plain(arm), *part_cells(own)] for arm, own in parts.items()])
        yield ""
    yield from table(SIZE_HEADS, [_size_cells(row) for row in rows])
    yield ""
    yield "### What runs took"
    yield ""
    yield prose(OWN_TIMES)
    yield ""
    yield from table(OWN_HEADS, [[plain(row.arm), *own_cells(found.own.get(row.arm))] for row in report.rows])
    yield ""
    yield from items(map(prose, found.own_notes))


def _time_cells(row: ArmRow) -> list[str]:
    versus = row.versus
    expected = f", {expected_text(versus)}" if expected_text(versus) else ""
    flag = " **implausible**" if versus and versus.timed and versus.timed.implausible else ""
    ratio_text, saving, gap = time_cells(versus)
    return [
        plain(row.arm),
        significant(row.timed.seconds) if row.timed else DASH,
        plain(versus.reference) if versus else DASH,
        ratio_text + expected + flag,
        saving,
        gap,
        ratio(versus.bound if versus else None),
        millions(row.flops_per_token),
    ]


def time_cells(versus: Versus | None) -> tuple[str, str, str]:
    """Ratio, saving and gap with their intervals."""
    if versus is None or versus.timed is None:
        return DASH, DASH, DASH
    found, gap = versus.timed.found, versus.timed.gap
    return (
        f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})",
        f"{100 * (1 - found.ratio):.1f} ({100 * (1 - found.high):.1f} to {100 * (1 - found.low):.1f})",
        f"{1000 * gap[0]:.1f} ({1000 * gap[1]:.1f} to {1000 * gap[2]:.1f})",
    )


def part_cells(parts: dict[str, float]) -> list[str]:
    """Milliseconds of a step's parts."""
    return [f"{1000 * parts.get(name, 0.0):.1f}" for name in (*PARTS, "rest")]


def own_cells(own: Mapping[str, Any] | None) -> list[str]:
    """What the runs of an arm took: a cell for each head after the arm."""
    if own is None:
        return ["0", *(DASH for _ in OWN_HEADS[2:])]
    low, high = map(format_seconds, own["total_seconds_range"])
    per_step = own["per_step_avg"]
    return [
        str(own["n"]),
        own["total_formatted"] + (f" ({low} to {high})" if own["n"] > 1 else ""),
        _time(own["per_epoch_avg"]),
        significant(None if per_step is None else 1000 * per_step),
        _time(own["validation_total"]),
        share(own["gpu_utilization"]),
        share(own["step_cv"]),
    ]


def _time(seconds: float | None) -> str:
    return DASH if seconds is None else format_seconds(seconds)


def _size_cells(row: ArmRow) -> list[str]:
    counts = [whole(row.trainable), whole(row.frozen), share(row.trainable_share), megabytes(row.saved_bytes)]
    return [plain(row.arm), str(len(row.scores)), *counts, _spread(row.peak_memory, gigabytes)]


def _spread(spread: RunSpread | None, show: Callable[[float | None], str]) -> str:
    if spread is None:
        return DASH
    return show(spread.median) + (f" ({show(spread.low)} to {show(spread.high)})" if spread.n > 1 else "")


def timing_notes(timing: StudyTiming | None) -> list[str]:
    """What was measured, and whether to believe it."""
    if timing is None:
        return [UNTIMED]
    epochs = [
        f"{arm} does {time.epoch_seconds:.1f} s of work after each epoch of {time.steps_per_epoch:,} steps, which is not "
        "in its step."
        for arm, time in timing.arms.items()
        if time.epoch_seconds
    ]
    return [
        effort_sentence(timing),
        aa_sentence(timing),
        *implausible_sentences(timing),
        *share_of_bound(timing),
        *epochs,
        *timing.conditions.lines(),
    ]


def _lost(evidence: Evidence) -> list[str]:
    """Sessions that are not what was written, so that nobody drops one unseen."""
    return [f"A timing session is left out: {name}." for name in read_sessions(evidence.results.folder)[1]]


def _unlike(evidence: Evidence) -> list[str]:
    unlike = evidence.results.hardware.unlike
    arms = ", ".join(f"{arm} (beside {other})" for arm, other in unlike.items())
    return [f"Left out, as runs that would be compared were on unlike hardware: {arms}."] if unlike else []


def own_time_notes(header: Header, machine: Machine) -> tuple[str, ...]:
    """What to know of the times that runs recorded."""
    notes = [
        "Means over runs; brackets hold the lowest and the highest run. A total is all of a run: training, validation, test "
        "and checkpoints. An epoch and a step are training alone, with loading data.",
        "CV is the coefficient of variation: the standard deviation of a run's step times by their mean, without its first "
        f"{WARM_UP} steps; the mean over runs. Batches of different lengths add to it.",
        f"Runs were in {header.order} order, several at a time where the machine has several cores, next to whatever else it "
        "did.",
    ]
    if machine.load_before is not None:
        low, high = machine.load_before
        after = f", {machine.load_after[0]:.2f} to {machine.load_after[1]:.2f} after" if machine.load_after else ""
        notes.append(f"Load average {low:.2f} to {high:.2f} before runs{after}.")
    if machine.busy:
        runs = plural(len(machine.busy), "run")
        notes.append(f"{runs} began on a busy machine ({list_texts(machine.busy)}).")
    for texts, what in (
        (machine.shared, "shared the device with other work"),
        (machine.slowed, "had a GPU that was slowed down"),
    ):
        if texts:
            runs = plural(len(texts), "run")
            notes.append(
                f"{runs} {what}, so that times of {'it' if len(texts) == 1 else 'them'} say little ({list_texts(texts)})."
            )
    return tuple(notes)


def bound_notes(comparisons: Iterable[Versus]) -> list[str]:
    """What the bound counts."""
    found = list(comparisons)
    notes = []
    if any(versus.bound is not None for versus in found):
        notes.append(
            "The bound is the lowest ratio to the arm compared with that matrix products allow, counted at step 0 for one "
            "forward and one backward pass. It counts nothing else: what a frozen tensor saves the optimizer can add a "
            "little, and time spent on anything else draws the ratio towards 1."
        )
    if any(versus.bound is None and versus.n for versus in found):
        notes.append(
            "An arm without a bound differs from the arm it is compared with in the work of a step "
            f"({', '.join(WORK)}, passes through the model), or its runs were recorded without counting."
        )
    if any(versus.expected not in (None, 1) for versus in found):
        notes.append(
            "The expected ratio counts the passes through the model that an arm's methods make; a pass without gradients of "
            "weights counts two thirds. Clipping and the optimizer's update are done once however many passes there are, so "
            "less than the expected ratio is usual."
        )
    return notes


def as_json(found: TimeAndSize) -> dict[str, Any]:
    return {
        "timing_notes": [*found.notes, *found.own_notes],
        "timing": None if found.timing is None else comparison_json(found.timing),
        "run_times": found.own,
    }


def names(found: TimeAndSize, report: ReportContent) -> dict[str, Any]:
    arms = [row.arm for row in report.rows]
    return {
        "expected_text": expected_text, "time_cells": time_cells, "part_cells": part_cells, "step_parts": (*PARTS, "rest"),
        "own_heads": OWN_HEADS, "own_cells": own_cells, "own_times": OWN_TIMES,
        "bars": both_widths("costs.figure:bars_svg", arms, found.own) if found.own else None,
        "steps": both_widths("costs.figure:steps_svg", arms, found.own) if found.own else None,
    }  # fmt: skip


SECTION = ReportSection(__name__, gather, markdown, names=names, json=as_json)
