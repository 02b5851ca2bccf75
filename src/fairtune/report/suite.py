"""A suite for readers: one page, the same as Markdown and as JSON, and a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.arms_over_tasks import ArmOverTasks, GroupMean
from fairtune.analysis.scales import scale_of
from fairtune.analysis.suite_cells import ArmCell, StudyState
from fairtune.analysis.suite_verdict import MetricOverTasks, SuiteVerdict, arm_sentence
from fairtune.analysis.task_means import FEWEST_TASKS, Improvement
from fairtune.core.files import indented_json
from fairtune.core.markdown import heading, items, plain, table
from fairtune.core.numbers import DASH, p_value, plural, significant
from fairtune.core.printable import LINES, capital, printable, printable_json, with_printable_texts
from fairtune.ledger.studies import suite_folder
from fairtune.ledger.timings import format_seconds
from fairtune.report.html import page_environment
from fairtune.report.page_files import write_page
from fairtune.report.suite_forest import make_forests
from fairtune.report.suite_profiles import draw_profiles
from fairtune.report.terminal import STYLES, shown
from fairtune.report.writer import FOLDER as REPORT
from fairtune.settings.metrics import METRICS

WIDEST_NAME = 28
"""Of arms, in the terminal's table; longer ones are folded."""
HEADS = ("arm", "verdict", "tasks", "mean difference", "p (Holm)", "better, worse, neither", "worst", "improvement")

TIME_HEADS = (
    "study", "arm", "n", "total time", "per epoch", "per step (ms)", "validation", "timed against", "ratio of a step",
)  # fmt: skip
TIMES = (
    "Means over runs. Each run was timed on its own, so do not compare these times. The ratio of a step, with its interval, comes "
    "from `fairtune time`, in which the arms take turns."
)


def write_suite(found: SuiteVerdict, folder: Path, runs: Path) -> dict[str, Path]:
    """Write the page, Markdown and JSON; returns the paths by format.

    Args:
        runs: where the studies' own reports are, to which the page leads.

    Raises:
        LedgerError: the folder cannot be written.
    """
    links = {study.study for study in found.studies if (runs / study.study / REPORT / "index.html").is_file()}
    home = folder == suite_folder(runs, found.suite)
    texts = {
        "html": ("index.html", suite_html(found, links if home else set())),
        "markdown": ("suite.md", suite_markdown(found)),
        "json": ("suite.json", suite_json(found)),
    }
    return write_page(folder, texts, "the suite's page")


def suite_json(found: SuiteVerdict) -> str:
    return printable_json(indented_json(found.as_json())) + "\n"


def title_of(one: MetricOverTasks) -> str:
    """A metric at the head of its part of the page."""
    scale = scale_of(one.metric)
    lower = ", lower is better" if METRICS[one.metric].lower_is_better else ""
    tasks = plural(len(one.tasks), "task")
    return f"{capital(scale.title)}: {tasks} (differences in {one.unit}{lower})"


def summary_cells(one: MetricOverTasks, line: ArmOverTasks) -> list[str]:
    """An arm's row of the table over tasks."""
    found, worst, chance = line.found, line.worst, line.improvement
    own = worst.found if line.tasks == 1 and worst is not None and worst.found is not None else found
    low, high = (
        (own.low, own.high) if found.low is None else (found.low, found.high)
    )  # of one task, its study's interval
    mean = f"{one.text(found.difference)}{f' [{one.text(low)}, {one.text(high)}]' if low is not None else ''}"
    tasks = str(line.tasks) if line.tasks == line.planned else f"{line.tasks} of {line.planned}"
    return [
        line.arm,
        line.verdict.word,
        tasks,
        mean if line.tasks else DASH,
        p_value(line.verdict.p),
        f"{line.better}, {line.worse}, {line.open}" if line.tasks else DASH,
        DASH if worst is None or worst.found is None else f"{one.text(worst.found.difference)} ({worst.label})",
        DASH if chance is None or line.tasks < FEWEST_TASKS else _chance(chance),
    ]


def _chance(found: Improvement) -> str:
    """A chance with its interval, unless no draw of runs ever gave another."""
    ends = f" [{100 * found.low:.0f}, {100 * found.high:.0f}]" if found.low < found.high else ""
    return f"{100 * found.mean:.0f} %{ends}"


def cell_text(one: MetricOverTasks, cell: ArmCell) -> str:
    """What the table of arms and studies shows of one of them."""
    if not cell.is_counted:
        return f"({cell.state})"
    return f"{cell.word} {one.text(cell.found.difference)}" if cell.found is not None else cell.word


def columns_of(one: MetricOverTasks) -> list[str]:
    """The studies of a metric, as the heads of columns."""
    return [cell.label for cell in one.all_arms[0].cells] if one.all_arms else []


def study_line(study: StudyState, mind: bool = True) -> str:
    """A study in a line: how far it is.

    Args:
        mind: and what to mind of it.
    """
    done, planned = study.runs
    runs = f"{done} of {planned} runs finished" if planned else "no runs"
    failed = f", {study.failed} failed" if study.failed else ""
    why = f" ({study.reason})" if study.reason else ""
    rest = f" Mind: {' '.join(remarks_of(study))}" if study.remarks and mind else ""
    return f"{study.study}: {study.task}, {study.model}, {study.group}; {study.state}{why}; {runs}{failed}.{rest}"


def remarks_of(study: StudyState) -> list[str]:
    """What to mind of a study, as sentences."""
    return [_sentence(one) for one in study.remarks]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def incomplete(found: SuiteVerdict) -> str:
    """What the table lacks; empty where it lacks nothing."""
    open_studies = [study for study in found.studies if study.state != "finished"]
    if not open_studies:
        return ""
    names = ", ".join(f"{study.study} ({study.state})" for study in open_studies)
    return f"The table is incomplete: {names}. These cells are shown and counted as missing; none is left out of sight."


def time_cells(own: Mapping[str, Any]) -> list[str]:
    """A row of the table of times."""
    parts = [own[name] for name in ("per_epoch_avg", "per_step_avg", "validation_total")]
    epoch, step, validation = (DASH if part is None else format_seconds(part) for part in parts)
    if parts[1] is not None:
        step = significant(1000 * parts[1])
    ratio = DASH
    if own["ratio"] is not None:
        low, high = own["ratio_interval"]
        ratio = f"{own['ratio']:.3f} [{low:.3f}, {high:.3f}]"
    names = [own["study"], own["arm"], str(own["n"]), own["total_formatted"]]
    return [*names, epoch, step, validation, own["against"] or DASH, ratio]


def suite_markdown(found: SuiteVerdict) -> str:
    return printable("\n".join(_markdown(found)), keep="\n") + "\n"


def _markdown(found: SuiteVerdict) -> Iterator[str]:
    yield f"# {plain(found.suite)}"
    yield ""
    yield plain(found.about) + "."
    yield ""
    yield f"**{plain(found.opening)}**"
    yield from ("", plain(found.registration.sentence))
    if text := incomplete(found):
        yield from ("", plain(text))
    for one in found.metrics:
        yield from heading(plain(title_of(one)))
        yield from table(HEADS, [[plain(cell) for cell in summary_cells(one, line)] for line in one.all_arms])
        yield ""
        yield from items(plain(f"{line.arm}: {arm_sentence(one, line)}") for line in one.all_arms)
        yield ""
        rows = [[plain(line.arm), *(plain(cell_text(one, cell)) for cell in line.cells)] for line in one.all_arms]
        yield from table(["arm", *map(plain, columns_of(one))], rows)
        groups = [(line, group) for line in one.all_arms if len(line.groups) > 1 for group in line.groups]
        if groups:
            yield ""
            rows = [
                [plain(line.arm), plain(group.group), str(group.tasks), _mean(one, group)] for line, group in groups
            ]
            yield from table(["arm", "group", "tasks", "mean difference, no verdict"], rows)
        profiled = [line for line in one.arms if line.profile is not None]
        if profiled:
            yield ""
            yield from table(
                ["arm", f"interquartile mean of gains, {one.unit}"],
                [[plain(line.arm), iqm_text(one, line)] for line in profiled],
            )
    if found.remarks:
        yield from heading("To mind")
        yield from items(map(plain, found.remarks))
    if found.times:
        yield from heading("Times")
        yield from (TIMES, "")
        yield from table(TIME_HEADS, [[plain(cell) for cell in time_cells(own)] for own in found.times])
    yield from heading("Studies")
    yield from items(plain(study_line(study)) for study in found.studies)


def _mean(one: MetricOverTasks, group: GroupMean) -> str:
    ends = f" [{one.text(group.low)}, {one.text(group.high)}]" if group.low is not None else ""
    return f"{one.text(group.difference)}{ends}"


def iqm_text(one: MetricOverTasks, line: ArmOverTasks) -> str:
    """The interquartile mean of an arm's gains with its interval."""
    assert line.profile is not None, "asked only where there is one"
    own = line.profile
    return f"{one.gain(own.iqm):+.2f} [{one.gain(own.iqm_low):+.2f}, {one.gain(own.iqm_high):+.2f}]".replace(
        "-", "\u2212"
    )


def suite_html(found: SuiteVerdict, links: set[str] | None = None) -> str:
    """The page.

    Args:
        links: studies whose reports lie beside it.
    """
    safe: SuiteVerdict = with_printable_texts(found)
    parts = []
    for place, one in enumerate(safe.metrics):
        drawn = draw_profiles(one, f"profiles{place}")
        parts.append(
            {
                "one": one,
                "title": title_of(one),
                "rows": [
                    (line, summary_cells(one, line), arm_sentence(one, line, word=False)) for line in one.all_arms
                ],
                "columns": columns_of(one),
                "cells": [(line, [(cell, cell_text(one, cell)) for cell in line.cells]) for line in one.all_arms],
                "forests": [*make_forests(one, one.arms), *make_forests(one, one.simple)],
                "profiles": None if drawn is None else Markup(drawn),
                "iqms": [(line.arm, iqm_text(one, line)) for line in one.arms if line.profile is not None],
                "lower": METRICS[one.metric].lower_is_better,
            }
        )
    page = page_environment().get_template("suite.html.j2")
    return printable(
        page.render(
            found=safe,
            parts=parts,
            heads=HEADS,
            time_heads=TIME_HEADS,
            times=[time_cells(own) for own in safe.times],
            times_text=TIMES,
            incomplete=incomplete(safe),
            lines=[(study, study_line(study, mind=False), remarks_of(study)) for study in safe.studies],
            links=links or set(),
        ),
        LINES,
    )


def suite_table(found: SuiteVerdict) -> Group:
    """The suite for the terminal."""
    parts: list[Table | Text] = [
        Text(shown(f"{found.suite}: {found.about}."), style="bold"),
        Text(shown(found.opening)),
        Text(shown(found.registration.sentence)),
        Text(),
    ]
    for one in found.metrics:
        parts += [Text(shown(title_of(one)), style="bold"), _terminal_table(one), Text()]
        told = [line for line in one.all_arms if line.verdict.note and line.tasks >= FEWEST_TASKS]
        parts += [Text(shown(f"  {line.arm}: {line.verdict.note}")) for line in told]
        parts.append(Text())
    open_studies = [study for study in found.studies if study.state != "finished"]
    parts += [Text(shown(f"  {study_line(study, mind=False)}")) for study in open_studies]
    parts += [Text(shown(f"  Mind: {remark}")) for remark in found.remarks]
    return Group(*parts)


def _terminal_table(one: MetricOverTasks) -> Table:
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    heads = ("arm", "verdict", "tasks", f"mean, {one.unit}", "p\n(Holm)", "better,\nworse,\nneither", "worst")
    name = min(max((len(shown(line.arm)) for line in one.all_arms), default=0), WIDEST_NAME)
    for head in heads:
        least = name if head == "arm" else None
        made.add_column(Text(head), overflow="fold", no_wrap=head in ("verdict", "tasks"), min_width=least)
    apart = False
    for line in one.all_arms:
        if line.simple and not apart and made.rows:
            apart = True
            made.add_section()
        cells: Sequence[str] = summary_cells(one, line)[: len(heads)]
        style = STYLES.get(line.verdict.word, "")
        made.add_row(*(Text(shown(cell), style=style if place == 1 else "") for place, cell in enumerate(cells)))
    return made
