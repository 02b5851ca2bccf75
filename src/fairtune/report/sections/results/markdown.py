"""Tables of figures as Markdown, of classifiers and of language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtune.analysis.arm_pairs import BOTH, SETTINGS
from fairtune.analysis.convergence import reached_text
from fairtune.analysis.scales import Scale, relative, scale_of
from fairtune.analysis.statistics import Summary
from fairtune.core.markdown import heading, plain, table
from fairtune.core.numbers import DASH, confidence, low_to_high, p_value, whole
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.sections.comparisons.markdown import difference_cells, difference_heads
from fairtune.settings.metrics import METRICS

BY_MISTAKE = ("precision", "recall", "specificity", "macro_precision", "macro_recall")
LOSSES = (
    "Recall is also called sensitivity. The best validation loss is the lowest of any evaluation, the final one that of the last; "
    "their intervals count seeds alone. Nothing is judged here."
)


def verdict_lines(header: Header, rows: Sequence[ArmRow]) -> Iterator[str]:
    """The table to read first: verdict, score, and the difference that the verdict goes by."""
    scale, many = scale_of(header.metric), header.family > 1
    lower = ", lower is better" if scale.lower_is_better else ""
    among = f"among {header.family}" if many else "interval"
    heads = [
        "arm", "verdict", "n", plain(f"{scale.heading}{lower}"), "against",
        f"difference ({plain('%' if scale.plain else scale.difference)}; {confidence(header.confidence)} {among})", "p (Holm)",
    ]  # fmt: skip
    yield from table(heads, [_verdict_cells(header, scale, row) for row in rows])


def _verdict_cells(header: Header, scale: Scale, row: ArmRow) -> list[str]:
    own, versus = row.summaries[header.metric], row.versus
    first, last = [plain(row.arm)], [str(own.n), summary_text(scale, own)]
    if versus is None:
        return [*first, "reference", *last, DASH, DASH, DASH]
    settings = ", ".join(confound.setting for confound in versus.confounds)
    differ = f" ({plain(settings)} too)" if settings and versus.about == BOTH else ""
    only = f" ({plain(settings)})" if settings and versus.about == SETTINGS else ""
    return [
        *first, f"**{versus.word}**{differ}{only}", *last, plain(versus.reference), difference_cell(scale, versus),
        p_value(versus.p).replace("<", "&lt;"),
    ]  # fmt: skip


def difference_cell(scale: Scale, versus: Versus) -> str:
    """The difference with the interval of the family, or its own where there is none; a plain number's as a share."""
    if versus.low is None:
        return DASH
    shared = versus.family_low is not None
    low, high = (versus.family_low, versus.family_high) if shared else (versus.low, versus.high)

    def show(value: float | None) -> str:
        return relative(value, versus.base).removesuffix(" %") if scale.plain else scale.signed(value)

    return f"{show(versus.difference)} ({low_to_high(low, high, show)})"


def result_lines(header: Header, rows: Sequence[ArmRow]) -> Iterator[str]:
    """Figures of classifiers and how they compare."""
    yield from heading("All figures")
    yield from table(_result_heads(header), [_result_cells(header, row) for row in rows])
    yield from heading("Other metrics")
    for metrics, details in zip(metric_groups(header, rows), (False, True), strict=True):
        titles = [scale_of(name).heading for name in metrics] + (detail_heads(header) if details else [])
        cells = ([*metric_cells(row, metrics), *(detail_cells(header, row) if details else [])] for row in rows)
        yield from table(
            ["arm", "n", *map(plain, titles)],
            [[plain(row.arm), str(len(row.scores)), *own] for row, own in zip(rows, cells, strict=True)],
        )
        yield ""
    yield LOSSES


def metric_groups(header: Header, rows: Sequence[ArmRow]) -> tuple[list[str], list[str]]:
    """The metrics of classifiers for two tables; the second has those of one kind of mistake."""
    names = dict.fromkeys(name for row in rows for name in row.summaries)
    return (
        [name for name in names if name not in BY_MISTAKE or name == header.metric],
        [name for name in names if name in BY_MISTAKE],
    )


def detail_heads(header: Header) -> list[str]:
    """Of the columns of `detail_cells`."""
    return ["best validation loss", "final validation loss", *target_heads(header)]


def detail_cells(header: Header, row: ArmRow) -> list[str]:
    """How a classifier's training went on the validation split."""
    scale = scale_of("loss")
    return [summary_text(scale, row.best_loss), summary_text(scale, row.final_loss), *target_cells(header, row)]


def target_heads(header: Header) -> list[str]:
    """Of the columns of `target_cells`."""
    return [] if header.target is None else [f"steps to a {header.target.text}", "epochs to it"]


def target_cells(header: Header, row: ArmRow) -> list[str]:
    """When runs reached the target, where the study states one."""
    if header.target is None:
        return []
    steps, epochs = ([*(found or {}).values()] for found in (row.steps_to_target, row.epochs_to_target))
    uncounted = any(steps) and not any(epochs)
    return [reached_text(steps) or DASH, "below 1" if uncounted else reached_text(epochs, places=2) or DASH]


def metric_cells(row: ArmRow, metrics: Sequence[str]) -> list[str]:
    """Means with their intervals."""
    cells = []
    for name in metrics:
        summary, scale = row.summaries.get(name), scale_of(name)
        known = summary is not None and summary.n
        cells.append(
            f"{scale.value(summary.mean)} ({low_to_high(summary.low, summary.high, scale.value)})"
            if known and summary
            else DASH
        )
    return cells


def _result_heads(header: Header) -> list[str]:
    level = confidence(header.confidence)
    scale = scale_of(header.metric)
    title = f"{scale.heading}, lower is better" if scale.lower_is_better else scale.heading
    return ["arm", "n", plain(title), "sd", f"{level} interval", *difference_heads(header)]


def _result_cells(header: Header, row: ArmRow) -> list[str]:
    own, scale = row.summaries[header.metric], scale_of(header.metric)
    figures = [scale.value(own.mean), scale.value(own.sd, own.mean), low_to_high(own.low, own.high, scale.value)]
    name = f"{plain(row.arm)} (simple baseline)" if row.learner else plain(row.arm)
    return [name, str(own.n), *figures, *difference_cells(header, row.versus)]


def text_result_lines(header: Header, rows: Sequence[ArmRow]) -> Iterator[str]:
    """Best and final, how they compare, and the other figures."""
    yield from heading("All figures")
    heads = ["arm", "n", f"{_head(header, header.metric)}, best", "final", *difference_heads(header)]
    yield from table(heads, [_text_result_cells(header, row) for row in rows])
    yield ""
    yield "Brackets hold intervals of the mean over seeds. Lower is better. The difference is that of best."
    yield from heading("Other metrics")
    others = list(dict.fromkeys(name for row in rows for name in row.summaries if name != header.metric))
    stated = map(plain, target_heads(header))
    heads = ["arm", "n", *(_head(header, name) for name in others), *stated, "tokens per second"]
    yield from table(heads, [_other_cells(header, row, others) for row in rows])


def _head(header: Header, metric: str) -> str:
    """A metric with what it counts: perplexity (per token, bpe-2000)."""
    scale = scale_of(metric)
    named = [header.text.tokenizer] if header.text is not None and METRICS[metric].of_tokens else []
    details = ", ".join(([scale.unit] if scale.unit else []) + named)
    return plain(f"{scale.title} ({details})" if details else scale.title)


def _text_result_cells(header: Header, row: ArmRow) -> list[str]:
    scale, best = scale_of(header.metric), row.summaries[header.metric]
    figures = [summary_text(scale, best), summary_text(scale, row.final)]
    return [plain(row.arm), str(best.n), *figures, *difference_cells(header, row.versus)]


def summary_text(scale: Scale, summary: Summary | None) -> str:
    """A mean with its interval, where there is one."""
    if summary is None or not summary.n:
        return DASH
    interval = "" if summary.low is None else f" ({low_to_high(summary.low, summary.high, scale.value)})"
    return scale.value(summary.mean) + interval


def _other_cells(header: Header, row: ArmRow, metrics: list[str]) -> list[str]:
    cells = [*metric_cells(row, metrics), *target_cells(header, row), whole(row.tokens_per_second)]
    return [plain(row.arm), str(len(row.scores)), *cells]
