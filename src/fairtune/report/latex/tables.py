"""Tables of a study for papers: booktabs, no vertical lines, marks for verdicts that the notes below explain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtune.analysis.arm_pairs import LEARNING, SIMPLE
from fairtune.analysis.scales import Scale, scale_of
from fairtune.analysis.statistics import Summary
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NOT_INFERIOR, WORSE
from fairtune.core.numbers import confidence, p_value
from fairtune.core.printable import capital
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.latex.plain import number, plain_latex
from fairtune.settings.metrics import METRICS

MARKS = {
    BETTER: "*", WORSE: r"\dagger", INFERIOR: r"\ddagger", NOT_INFERIOR: r"\circ", EQUIVALENT: "=",
}  # fmt: skip
SIZES = ((r"\small", 24, 4.8), (r"\footnotesize", 40, 4.4), (r"\scriptsize", 10**6, 3.9))
"""Letters, with how many rows of them a page holds, and how many points a figure is wide."""
COLUMN, PAGE, GAP = 235.0, 480.0, 8.0
"""Points of a usual column, of a usual page, and between two columns of a table."""
EVEN = 1.25
"""Sides of an interval that differ by no more than this factor are shown as half of its width."""
NOTHING = "--"
Rows = Sequence[ArmRow]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        kind: as `tabular` has it.
    """

    head: str
    kind: str
    cells: tuple[str, ...]


def verdicts_table(header: Header, rows: Rows) -> str:
    """Every primary comparison with both intervals, p and verdict: as wide as the page."""
    compared = [row.versus for row in rows if row.versus is not None]
    scale, many = scale_of(header.metric), header.family > 1
    level = plain_latex(confidence(header.confidence))
    columns = [
        Column("Arm", "X", tuple(plain_latex(one.arm) for one in compared)),
        Column("Against", "X", tuple(plain_latex(one.reference) for one in compared)),
        Column("$n$", "r", tuple(str(one.n) for one in compared)),
        Column("Difference", "r", tuple(_signed(scale, one, one.difference) for one in compared)),
        Column(f"{level} alone", "r", tuple(_interval(scale, one, one.low, one.high) for one in compared)),
        *([_family_column(header, scale, compared)] if many else []),
        Column(r"$p$", "r", tuple(number(p_value(one.p)) for one in compared)),
        Column("Verdict", "l", tuple(_verdict(one) for one in compared)),
    ]
    caption = f"Verdicts of {_about(header)}: differences in {plain_latex(scale.difference)}."
    notes = [*_verdict_notes(header, compared), _hidden(header, len(rows))]
    return _float("table*", header, "verdicts", caption, columns, _breaks(compared), notes)


def scores_table(header: Header, rows: Rows) -> str:
    """Mean and interval of every arm, with its difference to the arm it is compared with: as wide as a column."""
    scale, places = scale_of(header.metric), {row.arm: place for place, row in enumerate(rows, 1)}
    compared = [row.versus for row in rows if row.versus is not None]
    columns = [
        Column("", "r", tuple(map(str, places.values()))),
        Column("Arm", "X", tuple(map(plain_latex, places))),
        Column("$n$", "r", tuple(str(row.summaries[header.metric].n) for row in rows)),
        Column(_metric(scale), "r", tuple(mean_cell(scale, row.summaries[header.metric]) for row in rows)),
        Column("vs.", "r", tuple(str(places.get(row.versus.reference, "")) if row.versus else "" for row in rows)),
        Column("Difference", "r", tuple(_marked(scale, row.versus) for row in rows)),
    ]
    caption = f"Scores of {_about(header)}. Differences are to the arm whose number stands under “vs.”."
    apart = [row.learner is not None and row.versus is not None for row in rows]
    notes = [*_score_notes(header, compared), _hidden(header, len(rows))]
    return _float("table", header, "scores", caption, columns, _before(apart), notes)


def metrics_table(header: Header, rows: Rows) -> str:
    """Every metric of every arm: as wide as the page."""
    names = list(dict.fromkeys(name for row in rows for name in row.summaries))
    columns = [
        Column("Arm", "X", tuple(plain_latex(row.arm) for row in rows)),
        Column("$n$", "r", tuple(str(len(row.scores)) for row in rows)),
        *(Column(_metric(scale_of(name)), "r", _metric_cells(name, rows)) for name in names),
    ]
    apart = [row.learner is not None and row.versus is not None for row in rows]
    caption = f"All metrics of {_about(header)}."
    level = plain_latex(confidence(header.confidence))
    notes = [rf"Mean over $n$ seeds $\pm$ half of its {level} interval.", _direction(names), _hidden(header, len(rows))]
    return _float("table*", header, "metrics", caption, columns, _before(apart), notes)


def mean_cell(scale: Scale, summary: Summary) -> str:
    """84.20 ± 0.62; both sides of an interval that is far from even."""
    if not summary.n:
        return NOTHING
    mean = scale.value(summary.mean)
    if summary.low is None or summary.high is None:
        return number(mean)
    return _with_sides(scale, mean, summary.mean - summary.low, summary.high - summary.mean, summary.mean)


def _with_sides(scale: Scale, middle: str, below: float, above: float, like: float | None) -> str:
    shown = number(middle).strip("$")
    if max(below, above) <= EVEN * min(below, above) or not scale.value(above - below, like).strip("0.,"):
        half = number(scale.distance((below + above) / 2, like)).strip("$")
        return rf"${shown} \pm {half}$"
    lower, upper = (number(scale.distance(side, like)).strip("$") for side in (below, above))
    return rf"${shown}\,{{}}^{{+{upper}}}_{{-{lower}}}$"


def _metric_cells(name: str, rows: Rows) -> tuple[str, ...]:
    scale = scale_of(name)
    return tuple(mean_cell(scale, row.summaries[name]) if name in row.summaries else NOTHING for row in rows)


def _marked(scale: Scale, versus: Versus | None) -> str:
    if versus is None:
        return ""
    if versus.difference is None or versus.low is None or versus.high is None:
        return NOTHING
    shown = scale.signed(versus.difference, versus.base)
    sides = (versus.difference - versus.low, versus.high - versus.difference)
    cell = _with_sides(scale, shown, *sides, versus.base)
    mark = MARKS.get(versus.word)
    return cell + (rf"\rlap{{$^{{{mark}}}$}}" if mark else "")


def _signed(scale: Scale, versus: Versus, value: float | None) -> str:
    return number(scale.signed(value, versus.base)) if versus.low is not None else NOTHING


def _interval(scale: Scale, versus: Versus, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NOTHING
    lowest, highest = (number(scale.signed(end, versus.base)).strip("$") for end in (low, high))
    return rf"$[{lowest},\ {highest}]$"


def _family_column(header: Header, scale: Scale, compared: Sequence[Versus]) -> Column:
    cells = tuple(_interval(scale, one, one.family_low, one.family_high) for one in compared)
    return Column(f"among {header.family}", "r", cells)


def _verdict(versus: Versus) -> str:
    mark = MARKS.get(versus.word)
    return plain_latex(versus.word) + (f"$^{{{mark}}}$" if mark else "")


def _metric(scale: Scale) -> str:
    return capital(plain_latex(scale.title if scale.plain else scale.heading))


def _about(header: Header) -> str:
    return plain_latex(f"{header.study} ({header.task}, {header.model}, {header.metric_title})")


def _breaks(compared: Sequence[Versus]) -> int | None:
    return _before([versus.role == SIMPLE for versus in compared])


def _before(apart: Sequence[bool]) -> int | None:
    """The row before which simple baselines are set apart; None where nothing is."""
    return apart.index(True) if any(apart) and not all(apart) else None


def _verdict_notes(header: Header, compared: Sequence[Versus]) -> list[str]:
    level = plain_latex(confidence(header.confidence))
    family = (
        f"; “among {header.family}”: the interval that all {header.family} primary comparisons share; $p$ is corrected over "
        "them (Holm)"
        if header.family > 1
        else "; there is one primary comparison"
    )
    simple = (
        f"Simple baselines ({header.simple_family}) are corrected among themselves." if header.simple_family else ""
    )
    return [
        plain_quotes(
            f"$n$: seeds that both arms have. {level} alone: the interval of this comparison{family}. {simple}"
        ),
        *_shared_notes(header, compared),
    ]


def _score_notes(header: Header, compared: Sequence[Versus]) -> list[str]:
    level = plain_latex(confidence(header.confidence))
    corrected = f", corrected (Holm) over {header.family} comparisons" if header.family > 1 else ""
    return [
        f"Mean over $n$ seeds and difference, $\\pm$ half of the {level} interval; verdicts go by paired seeds{corrected}.",
        *_shared_notes(header, compared),
    ]


def _shared_notes(header: Header, compared: Sequence[Versus]) -> Iterator[str]:
    """Marks, margin, direction, and settings in which compared arms differ."""
    words = dict.fromkeys(versus.word for versus in compared)
    used = [f"$^{{{mark}}}$ {plain_latex(word)}" for word, mark in MARKS.items() if word in words]
    unmarked = ["no mark: not shown"] if set(words) - set(MARKS) else []
    if used or unmarked:
        yield "; ".join([*used, *unmarked]) + "."
    yield _margin(header)
    if not header.fixed_before:
        yield "The plan was changed after results were known, or is not on record."
    yield _direction([header.metric])
    for versus in compared:
        if versus.confounds and versus.about != LEARNING:
            settings = ", ".join(confound.setting for confound in versus.confounds)
            yield plain_latex(f"{versus.arm} and {versus.reference} differ in {settings}.")


def _hidden(header: Header, shown: int) -> str:
    """What a table of some arms has to say wherever it is pasted."""
    if not header.hidden:
        return ""
    return f"{shown} of the study's {shown + len(header.hidden)} arms are shown; corrections are for all."


def _margin(header: Header) -> str:
    if header.margin is None:
        return plain_latex(f"Margin: {header.stated_margin}.") if header.stated_margin else "No margin was stated."
    scale = scale_of(header.metric)
    unit = "" if scale.plain else " points"
    share = f" ({header.stated_margin} of {header.reference})" if "%" in (header.stated_margin or "") else ""
    return plain_latex(f"Margin: {scale.distance(header.margin)}{unit}{share}.")


def _direction(names: Sequence[str]) -> str:
    lower = [scale_of(name).title for name in names if name in METRICS and scale_of(name).lower_is_better]
    return plain_latex(f"Lower is better: {', '.join(lower)}.") if lower else ""


def plain_quotes(text: str) -> str:
    """Typographic quotes as LaTeX writes them."""
    return text.replace("“", "``").replace("”", "''")


def _float(
    kind: str,
    header: Header,
    name: str,
    caption: str,
    columns: Sequence[Column],
    apart: int | None,
    notes: Sequence[str],
) -> str:
    """A floating table with its notes below.

    Args:
        apart: the row before which a line is drawn.
    """
    count, wide = len(columns[0].cells), kind.endswith("*")
    size, width = _size(columns, PAGE if wide else COLUMN), r"\textwidth" if wide else r"\columnwidth"
    kinds = "".join(r">{\raggedright\arraybackslash}X" if column.kind == "X" else column.kind for column in columns)
    end = r"@{\hspace{0.6em}}" if columns[-1].kind == "r" else "@{}"  # marks stand beside the last figures
    lines = [
        rf"\begin{{{kind}}}[t]",
        rf"\centering{size}\setlength{{\tabcolsep}}{{4pt}}\setlength{{\belowcaptionskip}}{{4pt}}",
        rf"\caption{{{plain_quotes(caption)}}}",
        rf"\label{{tab:{label_of(header.study)}-{name}}}",
        rf"\begin{{tabularx}}{{{width}}}{{@{{}}{kinds}{end}}}",
        r"\toprule",
        " & ".join(column.head for column in columns) + r" \\",
        r"\midrule",
    ]
    for place in range(count):
        if place == apart:
            lines.append(r"\midrule")
        lines.append(" & ".join(column.cells[place] for column in columns) + r" \\")
    told = " ".join(note.strip() for note in notes if note)
    lines += [
        r"\bottomrule",
        r"\end{tabularx}",
        rf"\par\vspace{{3pt}}\begin{{minipage}}{{{width}}}\footnotesize\raggedright {told}\end{{minipage}}",
        rf"\end{{{kind}}}",
    ]
    return "\n".join(lines) + "\n"


def _size(columns: Sequence[Column], room: float) -> str:
    """The largest letters in which the table fits, by the widest cell of each column; names may break at hyphens."""
    signs = sum(max(map(_signs, (column.head, *column.cells))) for column in columns)
    gaps = GAP * (len(columns) - 1)
    for size, rows, points in SIZES:
        if len(columns[0].cells) <= rows and gaps + points * signs <= room:
            return size
    return SIZES[-1][0]


def _signs(cell: str) -> int:
    """Signs of the longest part of a cell that is not broken."""
    shown = re.sub(r"\\rlap\{.*\}|\\(?!allowbreak)[A-Za-z]+|[${}\\^]", "", cell)
    parts = [shown] if "$" in cell else re.split(r"(?<=-)|allowbreak| ", shown)
    return max(map(len, parts))


def label_of(study: str) -> str:
    """A study's name as a label may have it."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign == "-") else "-" for sign in study)
