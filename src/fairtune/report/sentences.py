"""What the evidence supports, in plain sentences, and how to read a report."""

from __future__ import annotations

from collections.abc import Sequence

from fairtune.analysis.verdicts import BETTER, INFERIOR, NONE, NOT_INFERIOR, NOT_SEPARABLE, WORSE
from fairtune.report.content import ArmRow, Finding, Header, Machine, Versus
from fairtune.report.numbers import between, confidence, distance, metric_unit, p_equals, percent, points
from fairtune.report.starting import CardSummary

REFERENCE = "reference"


def findings(header: Header, rows: Sequence[ArmRow], fair: Sequence[Versus]) -> tuple[Finding, ...]:
    """A finding for every arm, the reference first."""
    first = [row for row in rows if row.versus is None]
    others = [row for row in rows if row.versus is not None]
    return tuple(_finding(header, row, [v for v in fair if v.arm == row.arm]) for row in (*first, *others))


def _finding(header: Header, row: ArmRow, fair: Sequence[Versus]) -> Finding:
    cautions = []
    if row.failed:
        cautions.append(f"{row.failed} of its {row.planned} runs failed; the figures are of the others only.")
    if row.versus is None:
        return Finding(row.arm, REFERENCE, _reference_text(header, row), tuple(cautions))
    if 2 <= row.versus.n < row.planned - row.failed:
        cautions.append(f"Only {row.versus.n} of {row.planned} planned seeds are finished in both arms.")
    if row.versus.confounds:
        cautions.append(f"{_confounds_text(row, row.versus)}{_control_text(header, row, fair)}")
    return Finding(row.arm, row.versus.word, versus_text(header, row.versus), tuple(cautions))


def _reference_text(header: Header, row: ArmRow) -> str:
    summary = row.summaries[header.metric]
    if summary.n == 0:
        return "the reference of all comparisons; no run of it is finished."
    told = f"the reference of all comparisons: {header.metric_title} {percent(summary.mean)}"
    told += " %" if metric_unit(header.metric) == "%" else " (× 100)"
    if summary.low is None:
        return f"{told} in its one finished run; an interval takes two."
    interval = between(summary.low, summary.high, percent)
    return f"{told} ({confidence(header.confidence)} interval {interval}, n = {summary.n})."


def versus_text(header: Header, versus: Versus) -> str:
    """One comparison in a sentence, without the arm's own name."""
    other, note = versus.reference, versus.note
    if versus.word == NONE or versus.difference is None:
        return f"no verdict against {other}: {note}."
    evidence = (
        f"({confidence(header.confidence)} interval {between(versus.low, versus.high, points)}, "
        f"n = {versus.n}, {p_equals(versus.p)})"
    )
    by = f"by {distance(versus.difference)} points {evidence}"
    told = {
        BETTER: f"better than {other} {by}.",
        WORSE: f"worse than {other} {by}.",
        INFERIOR: f"inferior to {other} {by}: a loss beyond the margin, {distance(header.margin)} points, is shown.",
        NOT_INFERIOR: f"not inferior to {other}: the difference is {points(versus.difference)} points {evidence}, "
        f"and a loss of the margin, {distance(header.margin)} points, is ruled out.",
        NOT_SEPARABLE: f"not separable from {other}: the difference is {points(versus.difference)} points {evidence}.",
    }[versus.word]
    return f"{told} {note[0].upper()}{note[1:]}." if note else told


def _confounds_text(row: ArmRow, versus: Versus) -> str:
    also = "also " if row.methods else ""
    told = " and ".join(f"{c.setting} ({c.value}, not {c.reference_value})" for c in versus.confounds)
    return f"It differs from {versus.reference} {also}in {told}."


def _control_text(header: Header, row: ArmRow, fair: Sequence[Versus]) -> str:
    if fair:
        return " " + " ".join(f"Like with like: {versus_text(header, v)}" for v in fair)
    if not row.methods:
        return " It has no methods: the difference is that of the settings."
    return " No arm without methods has its settings, so method and settings cannot be told apart."


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
        told = "; ".join(machine.busy[:3]) + (f"; and {len(machine.busy) - 3} more" if len(machine.busy) > 3 else "")
        notes.append(f"Do not trust these times: {runs} began on a busy machine ({told}).")
    return tuple(notes)


def starting_notes(cards: Sequence[CardSummary]) -> tuple[str, ...]:
    """How to read what the arms started from."""
    notes = []
    if any(card.geometry for card in cards):
        notes += [
            "The error of orthogonality is the largest entry of |W Wᵀ − I| of any head, over the query and key "
            "projections that the arm changed, or all of them if it changed none; the error of direction is the same "
            "with every row scaled to norm 1. The other figures are means over all heads.",
            "A cosine of 1 means that the heads read the same directions of their input as the checkpoint's do.",
        ]
    if any(card.proof for card in cards):
        notes.append(
            "Frozen tensors were compared with step 0 after training, bit for bit; a run in which one changed fails."
        )
    return tuple(notes)


def reading_notes(header: Header) -> tuple[str, ...]:
    """The method in short, with this study's numbers."""
    level = confidence(header.confidence)
    notes = [
        "n is the number of finished runs, one a seed. Figures are recomputed from stored predictions on the test "
        f"split ({header.rows.get('test', 0):,} examples); the best checkpoint was selected on the validation split.",
        f"An arm's interval is Student's {level} interval of its mean over seeds.",
        "A difference pairs the runs of the same seed. Its interval counts two kinds of luck, other seeds and other "
        "test examples, by a bootstrap over both, with Student's t for the few seeds; for one comparison at a time.",
        "p is for no difference at all, corrected by Holm over all comparisons of this study. Verdicts follow the "
        "corrected p, so an interval may leave out zero where the verdict is still “not separable”.",
        "No verdict is given from one run. “Not separable” is not “equal”: it says that these runs cannot tell.",
    ]
    if header.margin is not None:
        stated = (
            f" ({header.stated_margin} of {header.reference}'s mean)" if "%" in (header.stated_margin or "") else ""
        )
        notes.append(
            f"“Not inferior” means that a loss of {distance(header.margin)} points{stated} or more is ruled out, “inferior” that "
            "one of more than that is shown, and “worse” that there is a loss, not shown to be of more than that. "
            "The margin is part of the plan and was fixed before the first run."
        )
    elif header.stated_margin is not None:
        notes.append(f"The margin, {header.stated_margin} of {header.reference}'s mean, is known once that has run.")
    else:
        notes.append("The study states no margin, so no arm can be called “not inferior” or “inferior”.")
    return tuple(notes)
