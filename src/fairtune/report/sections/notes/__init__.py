"""How to read a report: what its figures mean, and what to mind before believing them."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.analysis.scales import scale_of
from fairtune.core.markdown import heading, items, prose
from fairtune.core.numbers import confidence, whole
from fairtune.report.content import Header, ReportContent, TextFacts
from fairtune.report.section import ReportSection

RESAMPLED = "So the luck of seeds is also that of the sample: every interval and p counts it, with Student's t for the seeds alone."
FIXED = (
    "Intervals and p do not count the luck of that one sample: with another one, all figures would be somewhat different "
    "(`examples: {per_class: N, resample: seed}` draws one for each seed)."
)


def markdown(notes: tuple[str, ...], _: ReportContent) -> Iterator[str]:
    yield from heading("How to read this")
    yield from items(map(prose, notes))


def reading_notes(header: Header) -> tuple[str, ...]:
    """The method in short, with this study's numbers."""
    level = confidence(header.confidence)
    unit = "examples" if header.text is None else "documents"
    return (
        *(_examples_notes(header) if header.text is None else _text_notes(header, header.text)),
        *_target_notes(header),
        f"An arm's interval is the {level} interval of its mean; it counts other seeds and other test {unit}, and stays inside "
        "what the metric can be.",
        "Each arm has one primary comparison, fixed in the plan: with its control (the same settings without the effect of its "
        f"methods) where the study has one, else with {header.reference}. Ranking, figures and first sentences use it. Where both "
        "methods and settings differ, no verdict is given.",
        *_simple_notes(header),
        "A difference pairs the runs of the same seed. Its interval alone counts two kinds of luck, other seeds and other "
        f"test {unit}, by a bootstrap over both, with Student's t for the few seeds.",
        "p is for no difference at all, corrected by Holm over the primary comparisons, those of arms that were given up included, "
        "and for every time that verdicts were taken. Verdicts follow the corrected p. The interval among all comparisons "
        "(Bonferroni) leaves out zero only where the corrected p is below the risk; Holm's test may be a little sharper than it.",
        "No verdict is given from one run. “Not separable” is not “equal”: it says that these runs cannot tell. A verdict that "
        "would not survive counting failed runs as the worst of their arm, or as no learning at all, is “not shown”.",
        _margin_note(header),
    )


def _simple_notes(header: Header) -> Iterator[str]:
    if header.simple_family:
        yield (
            f"Simple baselines (arms that are not fine-tuned) are compared with {header.reference}. They are a family of their "
            "own, with a correction among themselves, and are not ranked among the methods."
        )


def _examples_notes(header: Header) -> Iterator[str]:
    yield (
        "n is the number of finished runs, one per seed. Figures are recomputed from stored predictions on the test "
        f"split ({header.rows.get('test', 0):,} examples); the best checkpoint was selected on the validation split."
    )
    for sample in header.samples:
        yield f"{sample.sentence} {RESAMPLED if sample.resampled else FIXED}"
    if scale_of(header.metric).lower_is_better:
        yield f"A lower {header.metric_title} is better: a difference above zero is a loss of quality."


def _text_notes(header: Header, text: TextFacts) -> Iterator[str]:
    test = text.counts.get("test") or {}
    size = f"{whole(test.get('documents'))} documents, {whole(test.get('tokens'))} tokens"
    yield (
        "n is the number of finished runs, one per seed. Every token of the test split "
        f"({size}, the end of each document being one) is scored once, in fp32; figures are recomputed from stored sums "
        "by document."
    )
    yield (
        "“Best” is with the weights that did best on the validation split, “final” with those of the last step; both "
        "are figures of the test split. Differences, p, verdicts and the other metrics are of best."
    )
    if scale_of(header.metric).lower_is_better:
        yield f"A lower {header.metric_title} is better: a difference above zero is a loss of quality."
    yield (
        f"Perplexity, loss and accuracy are per token of {text.tokenizer}; a model with another tokenizer counts other "
        "tokens, so its perplexity cannot be compared with these. Word perplexity (words are what stands between spaces) "
        "and bits per byte can, on the same text."
    )


def _target_notes(header: Header) -> Iterator[str]:
    if (target := header.target) is not None:
        yield (
            f"Steps to a {target.text} end at the first validation {target.bound} it, so they are as fine as validations are "
            "frequent. The figure is the median over finished runs, of which those that never got there count as later than all "
            "others; brackets say how many got there, and the range of those."
        )


def _margin_note(header: Header) -> str:
    scale, reference = scale_of(header.metric), header.reference
    share = "%" in (header.stated_margin or "")
    if header.margin is None and header.stated_margin is None:
        return "The study states no margin, so no arm can be called “not inferior”, “equivalent” or “inferior”."
    if header.margin is None:
        known = "is a finite number" if scale.plain else "has run"
        return f"The margin, {header.stated_margin} of {reference}'s mean, is known once that {known}."
    fixed = (
        "The margin was fixed before the first run."
        if header.fixed_before
        else "See above for what was changed, and when."
    )
    if share:
        fixed += " In a comparison with another arm it is the same share of that arm's mean."
    if scale.plain:
        beyond = "higher" if scale.lower_is_better else "lower"
        stated = f"{_margin_text(header)} of {reference}'s mean ({scale.distance(header.margin)})"
        return (
            f"“Not inferior” means that a {header.metric_title} {beyond} by {stated if share else _margin_text(header)} or "
            f"more is ruled out, “inferior” that one {beyond} by more than that is shown, and “worse” that it is {beyond}, "
            f"not shown to be so by more than that; “equivalent” rules out a change by that much either way. {fixed}"
        )
    stated = f" ({header.stated_margin} of {reference}'s mean)" if share else ""
    return (
        f"“Not inferior” means that a loss of {scale.distance(header.margin)} points{stated} or more is ruled out, “inferior” that "
        f"one of more than that is shown, “worse” that there is a loss, not shown to be of more than that, and “equivalent” that a "
        f"gain of as much is ruled out too. {fixed}"
    )


def _margin_text(header: Header) -> str:
    """The margin of a plain metric, as the study states it."""
    stated = header.stated_margin or ""
    return f"{stated.rstrip('% ')} %" if "%" in stated else scale_of(header.metric).distance(header.margin)


SECTION = ReportSection(__name__, lambda evidence: reading_notes(evidence.header), markdown, folded=True)
