"""The sections of a study file that stand alone: how runs are trained, compared and timed.

Each field carries its help text once; `--help`, the JSON schema, the docs and the messages are made from it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

from fairtune.settings.few_labels import Examples
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.settings.values import (
    LONGEST_NAME,
    MOST_STEPS,
    Count,
    Evaluate,
    Margin,
    MaxLength,
    Number,
    Precision,
    Section,
    Tokens,
    Warmup,
    Whole,
    each_once,
)

if TYPE_CHECKING:
    AnyMetric = str
else:
    AnyMetric = Literal[tuple(METRICS)]

UNUSED = {"classify": {"tokens"}, TEXT: {"examples", "eval_examples", "attention"}}
"""Settings that mean nothing for a kind of task, so that no run of it has them."""
UNSTATED: dict[str, Any] = {
    "attention": None,
    "gradient_checkpointing": False,
    "attention_kernel": None,
    "compile": False,
    "deterministic": True,
}
"""Settings that a run's plan leaves out while they are these, as plans did from before there were such."""
ARITHMETIC = ("gradient_checkpointing", "attention_kernel", "compile", "deterministic")
"""Settings of how a run is computed: the same training, but other last bits, times and memory."""


class Train(Section):
    """How a run is trained. Every field may also stand in an arm, for that arm alone."""

    lr: Number = Field(2e-5, gt=0)
    """Learning rate at the peak of the schedule."""
    epochs: Number = Field(3, gt=0, le=100_000)
    """Passes over the training examples."""
    steps: Count | None = None
    """Optimizer steps to train; replaces `epochs`."""
    batch_size: Count = 32
    """Examples in one forward and backward pass."""
    accumulate: Count = 1
    """Batches whose gradients make one optimizer step."""
    examples: Examples | None = None
    """Train on this many examples, a fixed stratified sample that all arms and seeds share; or on so many of each class:
    {per_class: 8, resample: seed}."""
    tokens: Tokens | None = None
    """Tokens of training text that a language model uses, from its beginning; null is all of it."""
    eval_examples: Whole | None = Field(None, ge=10, le=MOST_STEPS)
    """Score at most this many examples of validation and of test, a fixed stratified sample of each."""
    max_length: MaxLength = 128
    """Longest input in tokens; longer ones are truncated. auto is the smallest length that covers 95 % of the training examples;
    `fairtune data lengths` shows it. For a language model, the tokens of a block: its context if absent or auto."""
    attention: Literal["causal", "bidirectional"] | None = None
    """What the tokens of a GPT-like classifier see. causal: only earlier ones; bidirectional: all of them; null is the model's own,
    causal unless it was saved as bidirectional."""
    warmup: Warmup = Field(0.1, ge=0)
    """Warm-up: a share of all steps up to 1, or a number of steps above 1."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """Course of the learning rate after the warm-up; linear and cosine end at 0."""
    weight_decay: Number = Field(0.01, ge=0)
    """AdamW's decay; never on biases and normalisation weights."""
    betas: tuple[Annotated[Number, Field(ge=0, lt=1)], Annotated[Number, Field(ge=0, lt=1)]] = (0.9, 0.999)
    """AdamW's two averaging rates."""
    clip: Number | None = Field(1.0, gt=0)
    """Largest norm of the whole gradient; null does not clip."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic of the forward pass; auto is bf16 on GPUs that have it, else fp32."""
    gradient_checkpointing: bool = False
    """Whether the forward pass of each layer is made once more in the backward pass instead of being kept: less memory, more time,
    the same gradients."""
    attention_kernel: Literal["sdpa", "eager", "flash"] | None = None
    """How attention is computed. sdpa: torch's fused kernels; eager: product by product; flash: the package flash-attn, on a GPU in
    16 bits; null is what transformers chooses for the model."""
    compile: bool = False
    """Whether the model's layers are compiled by torch. The first steps take minutes."""
    deterministic: bool = True
    """Whether a GPU is kept to kernels that give the same bits every time; false lets it take quicker ones, and no run is then
    promised to be repeated exactly."""
    evaluate: Evaluate = "epoch"
    """Score the validation split after each epoch, or every so many steps."""
    patience: Count | None = None
    """Stop after this many evaluations without a better validation score; null never."""

    @property
    def sizes(self) -> dict[str, Examples | None]:
        """How many examples of each split are used, where not all."""
        return {"train": self.examples, "validation": self.eval_examples, "test": self.eval_examples}

    @property
    def longest(self) -> int:
        """`max_length` as a number, which it is from the plan on."""
        if isinstance(self.max_length, str):
            raise ValueError("max_length: auto becomes a number when the study is planned")
        return self.max_length

    @property
    def unstated(self) -> set[str]:
        """The fields that a run's plan leaves out."""
        return {name for name, usual in UNSTATED.items() if getattr(self, name) == usual}

    def steps_per_epoch(self, examples: int) -> int:
        """Optimizer steps of one pass over so many training examples, or over the sample of them.

        Where the sample counts by class, they are those that are used.
        """
        used = min(examples, self.examples) if isinstance(self.examples, int) else examples
        return math.ceil(math.ceil(used / self.batch_size) / self.accumulate)

    def for_pairs(self) -> Train:
        """The same for a pass over pairs, of which there are more than examples."""
        return self.model_copy(update={"examples": None})

    def total_steps(self, examples: int) -> int:
        """Optimizer steps of a run over so many training examples, counted as for `steps_per_epoch`."""
        if self.steps is not None:
            return self.steps
        return max(1, round(self.epochs * self.steps_per_epoch(examples)))

    def warmup_steps(self, total: int) -> int:
        """Steps of the warm-up in a run of so many."""
        return int(self.warmup) if self.warmup > 1 else math.ceil(self.warmup * total)


def optional_fields(section: type[Section]) -> dict[str, Any]:
    """The section's fields, each optional, for a place that overrides some of them."""
    fields: dict[str, Any] = {}
    for name, info in section.model_fields.items():
        constraint: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        fields[name] = (constraint | None, Field(None, description=info.description))
    return fields


def is_nullable(field: str) -> bool:
    return type(None) in get_args(Train.model_fields[field].annotation)


class Compare(Section):
    """What the verdicts compare."""

    to: str = Field("baseline", max_length=LONGEST_NAME, title="an arm of the study")
    """The arm that all others are compared to."""
    margin: Margin | None = None
    """Loss that would not matter: `1.5%` of the mean of the arm compared with, or a plain number in the metric's own unit (0.01 is
    one point of accuracy)."""
    confidence: Number = Field(0.95, gt=0.5, lt=1)
    """Confidence of every interval and verdict."""
    target_loss: Number | None = Field(None, gt=0)
    """Report after how many steps a language model's validation loss is down to this."""
    target: Number | None = Field(None, ge=-1)
    """Report after how many steps and epochs a classifier's validation score reaches this, in the metric's own unit (0.85 is 85 %
    accuracy)."""
    also: Annotated[tuple[AnyMetric, ...], AfterValidator(each_once)] = Field(
        (), json_schema_extra={"uniqueItems": True}
    )
    """Further metrics, each with verdicts of its own beside those of the study's metric: a family for itself."""
    threshold: Literal["half", "validation"] = "half"
    """Where two classes are told apart on test. half: at a probability of one half; validation: where each run does best on its own
    validation split, by the study's metric, or by accuracy if that has no line."""


class Timing(Section):
    """The timing experiment of a study: all arms in one process, stepped in turns."""

    minutes: Number = Field(3, gt=0)
    """Measure for at most so long."""
    precision: Precision = 0.01
    """Stop as soon as every ratio of step times is known to within this share, up or down."""
