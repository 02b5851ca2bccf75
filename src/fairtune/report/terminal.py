"""The verdict table for the terminal: what `fairtune` shows when a study ends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Protocol

from rich import box
from rich.console import ConsoleOptions, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fairtune.analysis.arm_pairs import COPY, LEARNING, METHODS
from fairtune.analysis.convergence import reached_text
from fairtune.analysis.decision_lines import VALIDATION, probability_at
from fairtune.analysis.opening_sentence import shorten_lists
from fairtune.analysis.results import Results
from fairtune.analysis.scales import relative, scale_of
from fairtune.analysis.study_claims import study_claims
from fairtune.analysis.study_verdict import further_metrics
from fairtune.analysis.timing_words import aa_sentence, implausible_sentences
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NOT_INFERIOR, WORSE
from fairtune.core.numbers import (
    DASH,
    MINUS,
    confidence,
    p_value,
    share,
    significant,
)
from fairtune.core.printable import printable
from fairtune.report.content import ArmRow, Header, Versus, tokenizer_text
from fairtune.report.evidence import arm_rows, make_header
from fairtune.report.sections.claims import MOST_SHOWN
from fairtune.report.sections.comparisons.worth import cost_text
from fairtune.settings.metrics import METRICS

STYLES = {BETTER: "green", WORSE: "red", INFERIOR: "red", NOT_INFERIOR: "blue", EQUIVALENT: "blue"}


def verdict_table(results: Results) -> Group:
    """What was planned and what to mind, the table, then what each verdict rests on; fits in 100 columns."""
    header, rows, verdict = make_header(results), arm_rows(results), results.verdict()
    rows = tuple(sorted(rows, key=lambda row: row.versus is None or row.versus.role != COPY))
    notes = [
        *_text_notes(header, rows),
        *_target_notes(header, rows),
        *_arm_notes(rows),
        *_cost_notes(results, rows),
        *_raw_notes(header, rows),
        *_further_notes(results),
        *_line_notes(results),
        *_size_notes(rows),
        *_trouble(results),
    ]
    grave = [(caution.grade, shorten_lists(str(caution))) for caution in verdict.cautions if caution.grade != "note"]
    notes += [(caution.grade, shorten_lists(str(caution))) for caution in verdict.cautions if caution.grade == "note"]
    plan = " ".join(line.removesuffix(" Changed since:") for line in verdict.design if not line.startswith("- "))
    changes = [("changed", line[2:]) for line in verdict.design if line.startswith("- ")]
    first = [("plan", plan), *changes, *grave]
    answered = study_claims(results)
    claims = [(f"{one.word}: {one.claim}", one.summary) for one in answered[:MOST_SHOWN]]
    if len(answered) > MOST_SHOWN:
        claims.append(("claims", f"{len(answered) - MOST_SHOWN} more are in the report."))
    return Group(
        Text(verdict.opening, style="bold"),
        Text(),
        *(_hanging(name, text) for name, text in claims),
        *([Text()] if claims else []),
        *(_hanging(name, text) for name, text in first),
        Text(),
        _table(header, rows),
        *(_hanging(name, text) for name, text in notes),
    )


@dataclass(frozen=True)
class ArmName:
    """A name in a column of a table, broken at its hyphens where it has to be; inside a word only where that alone is too wide."""

    name: str

    def __rich_console__(self, _: object, options: ConsoleOptions) -> Iterator[Text]:
        yield Text("\n".join(wrap(shown(self.name), max(options.max_width, 1))))

    def __rich_measure__(self, *_: Any) -> Measurement:
        return Measurement(max(map(len, re.split(r"(?<=-)", self.name))), len(self.name))


def _table(header: Header, rows: Iterable[ArmRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold", min_width=8, max_width=24)
    for head in _heads(header):
        left = head in ("verdict", "against")
        table.add_column(
            Text(head),
            justify="left" if left else "right",
            no_wrap=head != "against",
            overflow="fold",
            max_width=20 if head == "against" else None,
        )
    cells = _text_cells if scale_of(header.metric).plain else _cells
    apart = False
    for row in rows:
        if row.learner is not None and row.versus is not None and not apart:
            apart = True
            table.add_section()  # simple baselines come last
        word = row.versus.word if row.versus else "reference"
        marked = f"{word} *" if row.versus and _is_noted(row.versus) else word
        texts = cells(header, row, marked)
        table.add_row(
            ArmName(row.arm),
            *(
                ArmName(text)
                if row.versus and text is row.versus.reference
                else Text(shown(text), style=STYLES.get(word, "") if text is marked else "")
                for text in texts
            ),
        )
    return table


def _is_noted(versus: Versus) -> bool:
    return bool(versus.note) or versus.about not in (METHODS, LEARNING)


def _heads(header: Header) -> list[str]:
    level, scale = confidence(header.confidence), scale_of(header.metric)
    if scale.plain:
        return [
            "n",
            f"{header.metric_title}\n± {level}",
            "against",
            f"difference, %\n[{level} alone]",
            "p\n(Holm)",
            "verdict",
        ]
    score, difference = f"{scale.title} {scale.unit}\n± {level}", f"difference, points\n[{level} alone]"
    return ["n", score, "against", difference, "p\n(Holm)", "verdict"]


def _cells(header: Header, row: ArmRow, verdict: str) -> list[str]:
    own, versus, scale = row.summaries[header.metric], row.versus, scale_of(header.metric)
    return [
        str(own.n),
        mean_text(header.metric, own),
        versus.reference if versus else DASH,
        _difference(versus, scale.signed) if versus else DASH,
        p_value(versus.p) if versus else DASH,
        verdict,
    ]


def _text_cells(header: Header, row: ArmRow, verdict: str) -> list[str]:
    own, versus = row.summaries[header.metric], row.versus
    base = versus.base if versus else None
    return [
        str(own.n),
        mean_text(header.metric, own),
        versus.reference if versus else DASH,
        _difference(versus, lambda end: relative(end, base).removesuffix(" %")) if versus else DASH,
        p_value(versus.p) if versus else DASH,
        verdict,
    ]


class Estimate(Protocol):
    """A mean with its interval."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def mean_text(metric: str, own: Estimate) -> str:
    """A mean with half its interval, or with both ends where that is far from even."""
    scale = scale_of(metric)
    if own.low is None or own.high is None:
        return scale.value(own.mean)
    lowest, highest = METRICS[metric].bounds if metric in METRICS else (-math.inf, math.inf)
    half = (own.high - own.low) / 2
    if own.mean - half < lowest or own.mean + half > highest:  # far from even: ± would lead where no figure can be
        ends = (f"{scale.factor * end:.0f}" if not scale.plain else significant(end) for end in (own.low, own.high))
        return f"{scale.value(own.mean)} [{', '.join(ends)}]"
    return f"{scale.value(own.mean)} ± {scale.half_width(own.low, own.high, own.mean)}"


def _difference(versus: Versus, show: Callable[[float | None], str]) -> str:
    if versus.low is None:
        return DASH
    return f"{show(versus.difference)} [{show(versus.low)}, {show(versus.high)}]"


def _text_notes(header: Header, rows: Sequence[ArmRow]) -> Iterable[tuple[str, str]]:
    if header.text is None:
        if scale_of(header.metric).lower_is_better:
            yield header.metric_title, "lower is better"
        return
    yield (
        header.metric_title,
        f"lower is better; per token of {tokenizer_text(header.text)}; on the test split, with the weights that did best on "
        "validation",
    )
    scale = scale_of(header.metric)
    yield (
        "with the weights of the last step",
        _by_arm({row.arm: scale.value(row.final.mean) for row in rows if row.final}),
    )


def _target_notes(header: Header, rows: Sequence[ArmRow]) -> Iterable[tuple[str, str]]:
    if header.target is not None:
        steps = {row.arm: reached_text((row.steps_to_target or {}).values()) or DASH for row in rows}
        yield f"steps to a {header.target.text}", _by_arm(steps)


def _by_arm(texts: dict[str, str]) -> str:
    return "; ".join(f"{arm} {text}" for arm, text in texts.items())


def _arm_notes(rows: Iterable[ArmRow]) -> Iterable[tuple[str, str]]:
    """What stands behind each verdict: both intervals, and what is missing."""
    for row in rows:
        versus = row.versus
        if versus is not None and (_is_noted(versus) or versus.family_low is not None):
            settings = ", ".join(f"{c.setting} {c.value}, not {c.reference_value}" for c in versus.confounds)
            about = f" It compares {versus.about}: {settings}." if versus.about != METHODS and settings else ""
            yield f"{'* ' if _is_noted(versus) else ''}{row.arm}", f"{versus.text}{about}"


def _cost_notes(results: Results, rows: Iterable[ArmRow]) -> Iterable[tuple[str, str]]:
    """Times from the timing experiment; those of runs, each at its own time, are no comparison and stay in the report."""
    timing = results.timing
    found = {row.arm: cost_text(row.versus) for row in rows if row.versus and row.versus.timed}
    if timing is None or not found:
        return
    level = confidence(timing.confidence)
    yield f"time per step against the same arms [{level}]", f"{_by_arm(found)}. {aa_sentence(timing)}"
    yield from (("implausible", text.removeprefix("Implausible: ")) for text in implausible_sentences(timing))


def _raw_notes(header: Header, rows: Iterable[ArmRow]) -> Iterable[tuple[str, str]]:
    scale = scale_of(header.metric)
    found = {
        row.arm: relative(row.raw.difference, row.raw.base) if scale.plain else scale.signed(row.raw.difference)
        for row in rows
        if row.raw is not None and row.raw.difference is not None
    }
    if found:
        yield f"plain differences to {header.reference}, not verdicts", _by_arm(found)


def _further_notes(results: Results) -> Iterable[tuple[str, str]]:
    """Verdicts by the metrics that stand beside the study's own."""
    for metric in further_metrics(results):
        own, scale = results.by(metric), scale_of(metric)
        late = ", named after results were known" if metric in results.registration.late else ""
        found = {}
        for one in own.comparisons:
            base = one.means[1]
            size = relative(one.difference, base) if scale.plain else scale.signed(one.difference)
            found[one.arm] = f"{size} {one.verdict.word}"
        unit = "" if scale.plain else ", points"
        lower = ", lower is better" if scale.lower_is_better else ""
        title = f"{scale.title}, beside the verdict{late}{unit}{lower}"
        yield title, _by_arm({results.reference: scale.value(own.summary(results.reference).mean), **found})


def _line_notes(results: Results) -> Iterable[tuple[str, str]]:
    if results.registration.threshold == VALIDATION:
        lines = {
            arm: ", ".join(significant(probability_at(run.line)) for run in results.finished(arm))
            for arm in results.arms
        }
        yield (
            "decision lines, picked on validation, by seed",
            _by_arm({arm: text for arm, text in lines.items() if text}),
        )


def _size_notes(rows: Sequence[ArmRow]) -> Iterable[tuple[str, str]]:
    sizes = {row.arm: share(row.trainable_share) for row in rows if row.trainable_share is not None}
    if sizes:
        yield "trainable %", _by_arm(sizes)


def _trouble(results: Results) -> Iterable[tuple[str, str]]:
    yield from ((f"failed: {name}", reason) for name, reason in results.failures.items())
    open_runs = [run for run in results.runs if run.status not in ("finished", "failed", "damaged")]
    if open_runs:
        yield "not finished", f"{len(open_runs)} of {len(results.runs)} runs"
    yield from (("left out", text) for text in results.exclusions)


def _hanging(name: str, text: str) -> Table:
    """A note whose later lines stand in a little."""
    grid = Table.grid(padding=0)
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    start, rest = ("* ", name[2:]) if name.startswith("* ") else ("  ", name)
    grid.add_row(Text(start), Text.assemble((shown(rest), "bold"), shown(f": {' '.join(text.split())}")))
    return grid


def shown(text: str) -> str:
    """Plain signs, and nothing that a terminal would obey: a failure's reason may hold anything."""
    return printable(text.replace(MINUS, "-").replace(DASH, "-"))
