"""What a report says, as plain data: made once from the results, shown by every exporter."""

from __future__ import annotations

from dataclasses import dataclass

from fairtune.analysis.statistics import Summary
from fairtune.report.data_section import DataSection
from fairtune.report.maps.section import MapsSection
from fairtune.report.mistakes.content import MistakesSection
from fairtune.report.representation.section import RepresentationSection
from fairtune.report.samples import Samples
from fairtune.report.spread import Spread
from fairtune.report.starting import CardSummary


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
    counts: dict[str, dict[str, int]]
    blocks: tuple[int, ...]
    target_loss: float | None


@dataclass(frozen=True)
class Header:
    """What was studied.

    Args:
        text: None for a study of classifiers.
        from_scratch: the model is a preset, drawn anew for each seed; there is no checkpoint.
        used: examples of each split that every arm was cut down to; None where arms use all, or differ.
        metric_title: the metric's name as readers know it.
        margin: loss that would not matter, in the metric's unit; None without a margin or before it can be resolved.
        stated_margin: the margin as the study file has it.
        statuses: number of planned runs by status.
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
    text: TextFacts | None
    from_scratch: bool


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
        base: mean of the arm compared with, which changes in percent are of.
        margin: a loss that would not matter in this comparison, in the metric's unit.
        p: corrected by Holm over all comparisons of the study.
        slowdown: median over the shared seeds of the ratio of median step times, with the range of those ratios.
        expected: that ratio as counting passes through the model predicts it; None if a step's work differs otherwise.
        bound: the lowest such ratio that matrix products allow; None if it is not known.
        beats_bound: even the slowest of those seeds has a ratio below the bound.
        busy: a run of one of the two began on a machine that had other work, so that nothing follows from their times.
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
    slowdown: Spread | None
    expected: float | None
    bound: float | None
    beats_bound: bool
    busy: bool = False


@dataclass(frozen=True)
class Worth:
    """One line of the ranking: what a change gains, and whether that is worth its time.

    Args:
        left_out: the method that the other arm lacks; None in the ranking against the reference.
        gain, low, high: the difference turned so that more is better.
        answer: by the rule of `worth.py`.
    """

    versus: Versus
    left_out: str | None
    gain: float | None
    low: float | None
    high: float | None
    answer: str


@dataclass(frozen=True)
class ArmRow:
    """One arm's row of the table.

    Args:
        versus: None for the reference itself.
        summaries: by metric, the study's own first; of a language model, with the weights that were best on validation.
        final: the study's metric with the weights of the last step; None for a classifier.
        steps_to_target: by seed, None where it was never reached; None altogether without a target loss.
        tokens_per_second: of training, the median over runs; None for a classifier.
        scores: the study's metric by seed.
        seconds: by purpose, over runs.
        flops_per_token: matrix products of a forward and a backward pass.
        saved_bytes: gradients and optimizer state that frozen parameters do not need.
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
    step_seconds: Spread | None
    seconds: dict[str, Spread]
    trainable_share: float | None
    parameters: int | None
    trainable: int | None
    frozen: int | None
    flops_per_token: float | None
    saved_bytes: int | None
    peak_memory: Spread | None
    memory_kind: str | None


@dataclass(frozen=True)
class Finding:
    """What the evidence supports about an arm, in sentences; the first of the page.

    Args:
        word: the verdict, or `reference`.
        cautions: what to mind, each a sentence.
    """

    arm: str
    word: str
    text: str
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """Points of one run over its optimizer steps.

    Args:
        loss: training loss, each point the mean over the steps since the point before.
        score: the study's metric on the validation split.
    """

    arm: str
    seed: int
    status: str
    loss: tuple[tuple[int, float], ...]
    score: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Machine:
    """Where the runs happened.

    Args:
        facts: what all runs have in common.
        differing: what they do not, in words.
        load_before, load_after: lowest and highest load average over the runs.
        busy: runs that began on a machine that had other work.
    """

    facts: dict[str, str]
    differing: tuple[str, ...]
    load_before: tuple[float, float] | None
    load_after: tuple[float, float] | None
    busy: tuple[str, ...]


@dataclass(frozen=True)
class RunLine:
    """A planned run and how it ended; the signature says what exactly was run."""

    position: int
    arm: str
    seed: int
    status: str
    signature: str


@dataclass(frozen=True)
class ReportContent:
    """Everything a report says.

    Args:
        ranking: arms by what they gain; empty where fewer than two are compared with the reference.
        left_out: arms of several methods against those that lack one of them.
        like_with_like: comparisons with the arm that differs in nothing but the methods.
        samples: None for a study of classifiers.
        mistakes: None for language models, and before any run is finished.
        representation: None where no run kept what its model makes of examples.
        maps: None where no run recorded self-organising maps.
        retried: attempts that failed before a run finished.
        starting_notes: how to read the cards.
        notes: how to read the report.
    """

    header: Header
    findings: tuple[Finding, ...]
    rows: tuple[ArmRow, ...]
    ranking: tuple[Worth, ...]
    left_out: tuple[Worth, ...]
    like_with_like: tuple[Versus, ...]
    audit: tuple[str, ...]
    data: DataSection
    samples: Samples | None
    mistakes: MistakesSection | None
    representation: RepresentationSection | None
    maps: MapsSection | None
    curves: tuple[Curve, ...]
    timing_notes: tuple[str, ...]
    cards: tuple[CardSummary, ...]
    starting_notes: tuple[str, ...]
    machine: Machine
    failures: dict[str, str]
    retried: tuple[str, ...]
    unfinished: dict[str, str]
    exclusions: tuple[str, ...]
    warnings: tuple[str, ...]
    runs: tuple[RunLine, ...]
    notes: tuple[str, ...]
