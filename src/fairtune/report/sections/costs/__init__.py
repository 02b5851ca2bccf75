"""Time and size: seconds of a step beside the bound that matrix products set, parameters and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairtune.core.markdown import (
    heading,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH, gigabytes, megabytes, millions, ratio, share, significant, whole
from fairtune.report.content import (
    ArmRow,
    Evidence,
    Header,
    ReportContent,
    RunSpread,
    Versus,
)
from fairtune.report.evidence import WORK
from fairtune.report.machine import Machine
from fairtune.report.section import ReportSection
from fairtune.report.sections.comparisons.worth import expected_text

TIME_HEADS = ("arm", "n", "seconds per step", "ratio", "against", "bound: lowest ratio allowed", "MFLOP per token")
SIZE_HEADS = (
    "arm", "n", "trainable", "frozen", "trainable %", "gradients and optimizer state saved (MB)", "peak memory (GB)",
)  # fmt: skip


def gather(evidence: Evidence) -> tuple[str, ...]:
    """How to read the times; the figures are the rows'."""
    compared = [row.versus for row in evidence.rows if row.versus is not None]
    return (*timing_notes(evidence.header, evidence.machine), *bound_notes(compared))


def markdown(notes: tuple[str, ...], report: ReportContent) -> Iterator[str]:
    yield from heading("Time and size")
    yield from table(TIME_HEADS, [_time_cells(row) for row in report.rows])
    yield ""
    yield from items(map(plain, notes))
    yield ""
    yield from table(SIZE_HEADS, [_size_cells(row) for row in report.rows])


def _time_cells(row: ArmRow) -> list[str]:
    versus = row.versus
    slowdown = ", ".join(filter(None, (_spread(versus.slowdown if versus else None, ratio), expected_text(versus))))
    flag = " **beats its bound**" if versus and versus.beats_bound else ""
    cells = [
        slowdown + flag,
        plain(versus.reference) if versus else DASH,
        ratio(versus.bound if versus else None),
        millions(row.flops_per_token),
    ]
    return [plain(row.arm), str(len(row.scores)), _spread(row.step_seconds, significant), *cells]


def _size_cells(row: ArmRow) -> list[str]:
    counts = [whole(row.trainable), whole(row.frozen), share(row.trainable_share), megabytes(row.saved_bytes)]
    return [plain(row.arm), str(len(row.scores)), *counts, _spread(row.peak_memory, gigabytes)]


def _spread(spread: RunSpread | None, show: Callable[[float | None], str]) -> str:
    if spread is None:
        return DASH
    return show(spread.median) + (f" ({show(spread.low)} to {show(spread.high)})" if spread.n > 1 else "")


def timing_notes(header: Header, machine: Machine) -> tuple[str, ...]:
    """What to know before believing a time."""
    notes = [
        f"Each step time is the median optimizer step of a run, then the median over runs (lowest to highest run). "
        f"Runs were in {header.order} order, on a machine that may have had other work: an indication, "
        "not a timing experiment."
    ]
    if machine.load_before is not None:
        low, high = machine.load_before
        after = f", {machine.load_after[0]:.2f} to {machine.load_after[1]:.2f} after" if machine.load_after else ""
        notes.append(f"Load average {low:.2f} to {high:.2f} before runs{after}.")
    if machine.busy:
        runs = "1 run" if len(machine.busy) == 1 else f"{len(machine.busy)} runs"
        reasons = "; ".join(machine.busy[:3]) + (f"; and {len(machine.busy) - 3} more" if len(machine.busy) > 3 else "")
        notes.append(f"Do not trust these times: {runs} began on a busy machine ({reasons}).")
    return tuple(notes)


def bound_notes(comparisons: Iterable[Versus]) -> list[str]:
    """What the bound counts, and a caution for every measured ratio that beats it."""
    found = list(comparisons)
    notes = []
    if any(versus.bound is not None for versus in found):
        notes.append(
            "The bound is the lowest ratio to the arm compared with that matrix products allow, counted at step 0 for one "
            "forward and one backward pass. It counts nothing else: what a frozen tensor saves the optimizer can add a "
            "little, and time spent on anything else draws the ratio towards 1."
        )
    if any(versus.bound is None and versus.slowdown is not None for versus in found):
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
    return notes + [_caution(versus, versus.slowdown) for versus in found if versus.slowdown and versus.beats_bound]


def _caution(versus: Versus, seen: RunSpread) -> str:
    runs = (
        "in its one paired run"
        if seen.n == 1
        else f"({ratio(seen.low)} to {ratio(seen.high)} over {seen.n} seeds), even in its slowest run"
    )
    return (
        f"Faster than its bound allows: {versus.arm} took {ratio(seen.median)} of {versus.reference}'s time per step {runs}, and "
        f"matrix products allow {ratio(versus.bound)} at the lowest. So something besides them differed: other work on a "
        "shared machine, padding of the batches, or updates that the optimizer saved. Do not report it as the method's "
        "speed-up; time both arms again on an idle machine, in crossover order, with more seeds and steps."
    )


SECTION = ReportSection(
    __name__,
    gather,
    markdown,
    names=lambda *_: {"expected_text": expected_text},
    json=lambda notes: {"timing_notes": notes},
)
