"""What a report says, as plain data: made once from the results, shown by every exporter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from fairtune.analysis.convergence import Target
from fairtune.analysis.results import Results
from fairtune.analysis.statistics import Summary
from fairtune.analysis.timings import ArmTime, StepRatio
from fairtune.report.init_cards import CardSummary
from fairtune.report.machine import Machine
from fairtune.settings.few_labels import SharedSample


@dataclass(frozen=True)
class RunSpread:
    """A median over runs with the lowest and the highest of them."""

    n: int
    median: float
    low: float
    high: float


def spread_of(values: Iterable[float | None]) -> RunSpread | None:
    """The spread of what is there; None if nothing is."""
    found = [float(value) for value in values if value is not None]
    return RunSpread(len(found), float(median(found)), min(found), max(found)) if found else None


@dataclass(frozen=True)
class TextFacts:
    """What only a language model's study has.

    Args:
        tokenizer, vocabulary: of all arms; perplexities of other tokenizers cannot be compared with theirs.
        counts: documents, tokens, bytes and words by split.
        blocks: lengths of the blocks that arms train on, in tokens.
        target_loss: on validation; None if the study states none.
    """

    tokenizer: str
    vocabulary: int | None
    counts: dict[str, dict[str, int | bool]]
    blocks: tuple[int, ...]
    target_loss: float | None


def tokenizer_text(text: TextFacts) -> str:
    """The tokenizer with its size: bpe-2000 (2,000 tokens)."""
    return text.tokenizer if text.vocabulary is None else f"{text.tokenizer} ({text.vocabulary:,} tokens)"


@dataclass(frozen=True)
class Header:
    """What was studied.

    Args:
        text: None for a study of classifiers.
        samples: of the training split, that arms share.
        from_scratch: the model is a preset, drawn again for each seed; there is no checkpoint.
        used: examples of each split that every arm was cut down to; None where arms use all, or differ.
        metric_title: the metric's name as readers know it.
        margin: loss that would not matter, in the metric's unit; None without a margin or before it can be resolved.
        stated_margin: the margin as the study file has it.
        statuses: number of planned runs by status.
        family: primary comparisons, which are corrected together.
        simple_family: comparisons with simple baselines, which are corrected among themselves.
        fixed_before: whether all that verdicts go by was fixed before the first result, and not touched since.
        hidden: arms of the study that are not shown.
        target: what validation is to reach; null if the study states none.
    """

    study: str
    task: str
    task_source: str
    rows: dict[str, int]
    used: dict[str, int | None]
    model: str
    model_identity: str
    metric: str
    metric_title: str
    seeds: tuple[int, ...]
    order: str
    reference: str
    confidence: float
    margin: float | None
    stated_margin: str | None
    plan: str
    fairtune: str
    protocol: int
    statuses: dict[str, int]
    family: int
    fixed_before: bool
    text: TextFacts | None
    from_scratch: bool
    simple_family: int = 0
    samples: tuple[SharedSample, ...] = ()
    hidden: tuple[str, ...] = ()
    target: Target | None = None


@dataclass(frozen=True)
class Confound:
    """A setting, other than the methods, in which two compared arms differ."""

    setting: str
    value: str
    reference_value: str


@dataclass(frozen=True)
class Versus:
    """One arm against another over the seeds they share.

    Args:
        low, high: the interval of this comparison alone.
        family_low, family_high: the interval that all primary comparisons share.
        mean, base: of this arm and of the arm compared with, over the shared seeds; changes in percent are of the latter.
        margin: a loss that would not matter in this comparison, in the metric's unit.
        p: corrected by Holm over the family, and for looks.
        alone_p: of this comparison alone.
        role: primary, secondary, descriptive, A/A or simple baseline.
        about: in what the two differ: methods, settings or both; or learning, where one of them is not fine-tuned.
        seed_share: of the variance; the rest is that of the test examples.
        improvement: the share of pairs of runs in which this arm is better.
        needed: seeds in all that could settle it, lowest and highest.
        missing: runs of either arm that ended without a score.
        text: the comparison in a sentence or two.
        timed: the ratio of step times from the timing experiment; None where the two were not timed.
        time_change: that as a share, 0 where no change is clear; None where it cannot be told, for the reason `untold`.
        expected: that ratio as counting passes through the model predicts it; None if a step's work differs otherwise.
        bound: the lowest such ratio that matrix products allow; None if it is not known.
    """

    arm: str
    reference: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    base: float | None
    margin: float | None
    p: float | None
    word: str
    note: str
    confounds: tuple[Confound, ...]
    timed: StepRatio | None
    expected: float | None
    bound: float | None
    time_change: float | None = None
    untold: str = ""
    family_low: float | None = None
    family_high: float | None = None
    mean: float | None = None
    alone_p: float | None = None
    role: str = "primary"
    about: str = "methods"
    seed_share: float | None = None
    improvement: float | None = None
    needed: tuple[int, int] | None = None
    missing: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class ArmRow:
    """One arm's row of the table.

    Args:
        versus: its primary comparison; None for the reference itself.
        raw: the plain difference to the reference, where the primary comparison is with another arm.
        summaries: by metric, the study's own first, over the seeds of the primary comparison; of a language model, with the
            weights that were best on validation.
        final: the study's metric with the weights of the last step; None for a classifier.
        best_loss, final_loss: the lowest and the last validation loss of runs, with Student's t; None for a language model.
        steps_to_target: by seed, None where it was never reached; None altogether without a target.
        epochs_to_target: the same in epochs; None too where no epoch was finished.
        tokens_per_second: of training, as runs recorded it, the median over them; None for a classifier.
        scores: the study's metric by seed.
        timed: the arm in the timing experiment; None where it was not timed.
        step_seconds: as runs recorded it, each at its own time; not for comparison.
        seconds: by purpose, over runs.
        flops_per_token: matrix products of a forward and a backward pass.
        saved_bytes: gradients and optimizer state that frozen parameters do not need.
        learner: what it learns with, where it is not fine-tuned.
        simple: it is fitted at once: it has no steps, and no step times.
    """

    arm: str
    methods: tuple[str, ...]
    planned: int
    failed: int
    summaries: dict[str, Summary]
    final: Summary | None
    steps_to_target: dict[int, int | None] | None
    tokens_per_second: float | None
    scores: dict[int, float]
    versus: Versus | None
    raw: Versus | None
    timed: ArmTime | None
    step_seconds: RunSpread | None
    seconds: dict[str, RunSpread]
    trainable_share: float | None
    parameters: int | None
    trainable: int | None
    frozen: int | None
    flops_per_token: float | None
    saved_bytes: int | None
    peak_memory: RunSpread | None
    memory_kind: str | None
    learner: str | None = None
    simple: bool = False
    best_loss: Summary | None = None
    final_loss: Summary | None = None
    epochs_to_target: dict[int, float | None] | None = None


@dataclass(frozen=True)
class Evidence:
    """What sections are made from: the results, and what is worked out of them once.

    Args:
        rows: one per arm, in the study's order.
        left_out: arms of several methods against those that lack one of them, with that method.
        cards: what each arm started from, of those that have a finished run.
    """

    results: Results
    header: Header
    rows: tuple[ArmRow, ...]
    left_out: tuple[tuple[Versus, str | None], ...]
    cards: tuple[CardSummary, ...]
    machine: Machine


@dataclass(frozen=True)
class ReportContent:
    """Everything a report says.

    Args:
        sections: what each section gathered, by its name; None where the study has nothing of the kind.
    """

    header: Header
    rows: tuple[ArmRow, ...]
    sections: dict[str, Any]
