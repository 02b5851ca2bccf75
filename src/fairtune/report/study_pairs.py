"""Studies side by side, for readers: one page, the same as Markdown and as JSON, and a table for the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.fact_differences import FactDifference
from fairtune.analysis.scales import relative, scale_of
from fairtune.analysis.study_pairs import ArmFigure, StudiesBeside, StudyBeside
from fairtune.core.files import indented_json
from fairtune.core.markdown import heading, items, plain, table
from fairtune.core.numbers import DASH, confidence, low_to_high
from fairtune.core.printable import LINES, printable, printable_json, with_printable_texts
from fairtune.report.html import page_environment
from fairtune.report.page_files import write_page
from fairtune.report.terminal import STYLES, mean_text, shown

FOLDER = "compare"
UNLIKE = "These studies are not shown side by side: their figures are not of the same task."
HEADS = ("arm", "study", "n", "score", "verdict there", "against", "difference there")


def default_folder(runs: Path, found: StudiesBeside) -> Path:
    """Where a comparison is written, unless it is said: beside the studies, where no study can be taken for it."""
    names = [re.sub(r"[^\w.-]+", "-", study.label).strip("-.")[:60] or "study" for study in found.studies]
    return runs / FOLDER / "--".join(names)[:200]


def write_studies(found: StudiesBeside, folder: Path) -> dict[str, Path]:
    """Write the page, Markdown and JSON; returns the paths by format.

    Raises:
        LedgerError: the folder cannot be written.
    """
    texts = {
        "html": ("index.html", studies_html(found)),
        "markdown": ("compare.md", studies_markdown(found)),
        "json": ("compare.json", studies_json(found)),
    }
    return write_page(folder, texts, "the comparison")


def studies_json(found: StudiesBeside) -> str:
    value = {"comparable": found.comparable, "metric": found.metric if found.comparable else None, **asdict(found)}
    return printable_json(indented_json(value)) + "\n"


def studies_markdown(found: StudiesBeside) -> str:
    return printable("\n".join(_markdown(found)), keep="\n") + "\n"


def _markdown(found: StudiesBeside) -> Iterator[str]:
    yield f"# {' beside '.join(plain(study.label) for study in found.studies)}"
    yield ""
    yield from items(plain(study_line(study)) for study in found.studies)
    yield ""
    yield plain(first_sentence(found))
    if found.blocking:
        yield from heading("What differs in the task")
        yield from _differences(found, found.blocking)
    if found.arms:
        yield from heading("Arms")
        rows = [[plain(cell) for cell in row] for row in arm_cells(found)]
        yield from table([*map(plain, HEADS[:3]), plain(_score_head(found)), *map(plain, HEADS[4:])], rows)
    if found.differing:
        yield from heading("What else differs")
        yield from _differences(found, found.differing)
    own = [(arm.arm, one) for arm in found.arms for one in arm.settings]
    if own:
        yield from heading("Settings of arms that differ")
        rows = [[plain(arm), plain(one.name), *map(plain, one.values)] for arm, one in own]
        yield from table(["arm", "setting", *(plain(study.label) for study in found.studies)], rows)


def _differences(found: StudiesBeside, differences: Sequence[FactDifference]) -> Iterator[str]:
    rows = [[plain(one.name), *map(plain, one.values)] for one in differences]
    yield from table(["", *(plain(study.label) for study in found.studies)], rows)


def studies_html(found: StudiesBeside) -> str:
    safe = with_printable_texts(found)
    page = page_environment().get_template("study_pairs.html.j2")
    return printable(
        page.render(
            found=safe,
            first=first_sentence(safe),
            lines=[study_line(study) for study in safe.studies],
            score=_score_head(safe),
            rows=list(zip(_words(safe), arm_cells(safe), strict=True)),
        ),
        LINES,
    )


def first_sentence(found: StudiesBeside) -> str:
    """What may be concluded from what follows."""
    if found.comparable:
        return f"The task is the same: the same data, labels, scored examples and metric. {found.note}"
    names = ", ".join(one.name for one in found.blocking)
    return f"{UNLIKE} They differ in: {names}."


def study_line(study: StudyBeside) -> str:
    """A study in a line, with what to mind of it."""
    states = ", ".join(f"{count} {status}" for status, count in study.statuses.items()) or "no runs"
    fixed = (
        "fixed before the first result" if study.fixed_before else "changed after results were known, or not on record"
    )
    mind = f" Mind: {' '.join(study.cautions)}" if study.cautions else ""
    return f"{study.label}: {study.task}, {study.model}; runs: {states}; its plan was {fixed}.{mind}"


def arm_cells(found: StudiesBeside) -> list[list[str]]:
    """One row for each arm and study that has it; an arm's name stands in its first row."""
    rows = []
    for arm in found.arms:
        named = arm.arm
        for study, figure in zip(found.studies, arm.figures, strict=True):
            if figure is not None:
                rows.append([named, study.label, *_cells(found.metric, figure)])
                named = ""
    return rows


def _words(found: StudiesBeside) -> list[str]:
    return [figure.word for arm in found.arms for figure in arm.figures if figure is not None]


def _cells(metric: str, figure: ArmFigure) -> list[str]:
    score = mean_text(metric, figure) if figure.n else DASH
    count = str(figure.n) if figure.n == figure.planned else f"{figure.n} of {figure.planned}"
    return [count, score, figure.word, figure.against or DASH, _difference(metric, figure)]


def _difference(metric: str, figure: ArmFigure) -> str:
    scale = scale_of(metric)

    def show(value: float | None) -> str:
        return relative(value, figure.base) if scale.plain else scale.signed(value)

    if figure.difference is None or figure.difference_low is None:
        return DASH
    return f"{show(figure.difference)} [{low_to_high(figure.difference_low, figure.difference_high, show)}]"


def _score_head(found: StudiesBeside) -> str:
    levels = dict.fromkeys(confidence(study.confidence) for study in found.studies)
    return f"{scale_of(found.metric).heading} ± {' or '.join(levels)}"


def studies_table(found: StudiesBeside) -> Group:
    """The comparison for the terminal."""
    parts: list[Table | Text] = [Text(shown(study_line(study))) for study in found.studies]
    parts += [Text(), Text(shown(first_sentence(found)), style="" if found.comparable else "bold"), Text()]
    if found.blocking:
        parts.append(_difference_table(found, found.blocking))
    if found.arms:
        parts.append(_arm_table(found))
    if found.differing:
        parts += [Text("What else differs", style="bold"), _difference_table(found, found.differing)]
    own = [Text(shown(f"  {arm.arm}: {one}")) for arm in found.arms for one in arm.settings]
    if own:
        parts += [Text("Settings of arms that differ", style="bold"), *own]
    return Group(*parts)


def _arm_table(found: StudiesBeside) -> Table:
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    heads = [*HEADS[:3], _score_head(found), *HEADS[4:-1]]  # the page has differences too, for which there is no room
    for head in heads:
        made.add_column(
            Text(shown(head)),
            overflow="fold",
            no_wrap=head in ("n", "verdict there"),
            justify="right" if head == "n" else "left",
        )
    for word, cells in zip(_words(found), arm_cells(found), strict=True):
        if cells[0] and made.rows:
            made.add_section()
        row = cells[: len(heads)]
        made.add_row(*(Text(shown(cell), style=STYLES.get(word, "") if cell is word else "") for cell in row))
    return made


def _difference_table(found: StudiesBeside, differences: Sequence[FactDifference]) -> Table:
    made = Table(box=None, padding=(0, 2, 0, 0))
    made.add_column("")
    for study in found.studies:
        made.add_column(Text(shown(study.label)), overflow="fold")
    for one in differences:
        made.add_row(Text(shown(f"  {one.name}")), *(Text(shown(value)) for value in one.values))
    return made
