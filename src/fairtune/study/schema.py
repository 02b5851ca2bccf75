"""The schema of a study file. Each field carries its help text once; help, JSON schema and messages are made from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, PlainValidator, Tag, WithJsonSchema, create_model

from fairtune.methods.registry import MethodUse, method_use_json_schema, parse_method_use
from fairtune.study.arms import ArmPreset, add_named_arms, resolve_arms
from fairtune.study.file_task import FileTask
from fairtune.study.model_schema import Model, ModelName, PresetModel, Tokenizer
from fairtune.study.section import Section
from fairtune.study.token_counts import Tokens
from fairtune.study.values import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_ARMS,
    MOST_METHODS,
    MOST_STEPS,
    ArmName,
    Devices,
    Evaluate,
    Interval,
    Margin,
    MaxLength,
    Name,
    Number,
    Seeds,
    Warmup,
    Whole,
)

LARGEST_RATE, LARGEST_DECAY, LARGEST_NORM, LARGEST_LOSS = 1e38, 10_000, 1e9, 1e6
MOST_EPOCHS, MOST_IN_A_STEP = 100_000, 1_000_000
MOST_PROMPTS, LONGEST_PROMPT, MOST_PROFILES = 100, 10_000, 50
TaskName = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Train(Section):
    """How a run is trained. Every field may also stand in an arm, for that arm alone."""

    lr: Number = Field(2e-5, gt=0, le=LARGEST_RATE, description="Learning rate at the peak of the schedule.")
    epochs: Number = Field(3, gt=0, le=MOST_EPOCHS, description="Passes over the training examples.")
    steps: Whole | None = Field(None, ge=1, le=MOST_STEPS, description="Optimizer steps to train; replaces `epochs`.")
    batch_size: Whole = Field(32, ge=1, le=MOST_IN_A_STEP, description="Examples in one forward and backward pass.")
    accumulate: Whole = Field(
        1, ge=1, le=MOST_IN_A_STEP, description="Batches whose gradients make one optimizer step."
    )
    examples: Whole | None = Field(
        None,
        ge=2,
        le=MOST_STEPS,
        description="Train on this many examples, a fixed stratified sample that all arms and seeds share.",
    )
    tokens: Tokens | None = Field(
        None, description="Tokens of training text that a language model uses, from its beginning; null is all of it."
    )
    eval_examples: Whole | None = Field(
        None,
        ge=10,
        le=MOST_STEPS,
        description="Score at most this many examples of validation and of test, a fixed stratified sample of each.",
    )
    max_length: MaxLength = Field(
        128,
        description="Longest input in tokens; longer ones are truncated. auto is the smallest length that covers 95 % of the "
        "training examples; `fairtune data lengths` shows it. For a language model, the tokens of a block: its context "
        "if absent or auto.",
    )
    attention: Literal["causal", "bidirectional"] | None = Field(
        None,
        description="What the tokens of a GPT-like classifier see. causal: only earlier ones; bidirectional: all of them; null "
        "is the model's own, causal unless it was saved as bidirectional.",
    )
    warmup: Warmup = Field(
        0.1, ge=0, le=MOST_STEPS, description="Warm-up: a share of all steps up to 1, or a number of steps above 1."
    )
    schedule: Literal["linear", "cosine", "constant"] = Field(
        "linear", description="Course of the learning rate after the warm-up; linear and cosine end at 0."
    )
    weight_decay: Number = Field(
        0.01, ge=0, le=LARGEST_DECAY, description="AdamW's decay; never on biases and normalisation weights."
    )
    betas: tuple[Annotated[Number, Field(ge=0, lt=1)], Annotated[Number, Field(ge=0, lt=1)]] = Field(
        (0.9, 0.999), description="AdamW's two averaging rates."
    )
    clip: Number | None = Field(
        1.0, gt=0, le=LARGEST_NORM, description="Largest norm of the whole gradient; null does not clip."
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="Arithmetic of the forward pass; auto is bf16 on GPUs that have it, else fp32."
    )
    evaluate: Evaluate = Field(
        "epoch", description="Score the validation split after each epoch, or every so many steps."
    )
    patience: Whole | None = Field(
        None,
        ge=1,
        le=MOST_STEPS,
        description="Stop after this many evaluations without a better validation score; null never.",
    )

    @property
    def sizes(self) -> dict[str, int | None]:
        """How many examples of each split are used, where not all."""
        return {"train": self.examples, "validation": self.eval_examples, "test": self.eval_examples}

    @property
    def longest(self) -> int:
        """`max_length` as a number, which it is from the plan on."""
        if isinstance(self.max_length, str):
            raise ValueError("max_length: auto becomes a number when the study is planned")
        return self.max_length


def _optional(section: type[Section]) -> dict[str, Any]:
    """The section's fields, each optional, for a place that overrides some of them."""
    fields: dict[str, Any] = {}
    for name, info in section.model_fields.items():
        constraint: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        fields[name] = (constraint | None, Field(None, description=info.description))
    return fields


Method = Annotated[MethodUse, PlainValidator(parse_method_use), WithJsonSchema({})]


class _ArmBase(Section):
    """One way to train: a list of methods, and any field of `train` for this arm alone."""

    methods: tuple[Method, ...] = Field(
        (),
        max_length=MOST_METHODS,
        description="Changes to how the model is trained, applied in this order; if absent, those of the named arm "
        "that `preset` or else the arm's own name says.",
    )
    preset: ArmPreset | None = Field(
        None, description="Take the methods of this named arm; `fairtune methods` shows what each does."
    )
    model: ModelName | None = Field(
        None,
        description="Start from this checkpoint instead of the study's model, for this arm alone; it has its own tokenizer.",
    )


Arm = create_model("Arm", __base__=_ArmBase, __doc__=_ArmBase.__doc__, **_optional(Train))


class Compare(Section):
    """What the verdicts compare."""

    to: str = Field("baseline", max_length=LONGEST_NAME, description="The arm that all others are compared to.")
    margin: Margin | None = Field(
        None,
        description="Loss that would not matter: `1.5%` of the mean of the arm compared with, or a plain number in the "
        "metric's own unit (0.01 is one point of accuracy).",
    )
    confidence: Number = Field(0.95, gt=0.5, lt=1, description="Confidence of every interval and verdict.")
    target_loss: Number | None = Field(
        None,
        gt=0,
        le=LARGEST_LOSS,
        description="Report after how many steps a language model's validation loss is down to this.",
    )


class Execution(Section):
    """Where and how runs happen; nothing here changes a result, so nothing here is part of a run's signature."""

    devices: Devices = Field(
        ("auto",), description="Where runs happen, one worker a device; auto takes every GPU there is."
    )
    checkpoint_every: Interval = Field("5min", description="Save the state of a run after this time, or so many steps.")
    save_model: bool = Field(True, description="Keep each run's best model as a transformers folder.")


def _task_tag(value: Any) -> str:
    return "<name>" if isinstance(value, str) else "<files>"


class Study(Section):
    """A study: task x model x arms x seeds."""

    study: Name = Field(description="Name of the study; its runs are kept under this name.")
    task: Annotated[
        Annotated[TaskName, Tag("<name>")] | Annotated[FileTask, Tag("<files>")], Discriminator(_task_tag)
    ] = Field(description="A task of the catalogue by name, or your own files.")
    model: Model = Field(
        description="`minilm` (embedded), a folder, a hub id with an optional `@revision`, or a preset that is trained from "
        "scratch, such as gpt-mini."
    )
    tokenizer: Tokenizer | None = Field(
        None,
        description="The tokenizer of a folder or a hub id, or one that is trained on the training text; null takes the "
        "checkpoint's own.",
    )
    train_on: TaskName | None = Field(
        None,
        min_length=1,
        description="Train on the training split of this task instead; it must have the same labels.",
    )
    dedupe: bool = Field(
        False,
        strict=True,
        description="Take out of the training split what occurs twice, what has contradictory labels, and what is also in "
        "the validation or test split.",
    )
    allow_contamination: bool = Field(
        False, strict=True, description="Run although the training split is known to hold much of what is reported."
    )
    train: Train = Field(Train(), description="Training settings that all arms share.")
    seeds: Seeds = Field((0, 1, 2), description="How many seeds, or a list of them; each arm runs once with each.")
    prompts: tuple[Annotated[str, Field(min_length=1, max_length=LONGEST_PROMPT)], ...] | None = Field(
        None,
        min_length=1,
        max_length=MOST_PROMPTS,
        description="Texts that the language models of all arms go on with in the report; null takes the beginnings of some "
        "validation texts.",
    )
    arms: Annotated[dict[ArmName, Arm], BeforeValidator(resolve_arms)] = Field(
        min_length=1,
        max_length=MOST_ARMS,
        description="The ways to train that are compared, by name; or a list of named arms, taken as they are.",
    )
    order: Literal["crossover", "sequential", "random"] = Field(
        "crossover",
        description="Order of runs. crossover: seed by seed, arms forwards then backwards; sequential: arm by arm; "
        "random: shuffled by the plan's hash.",
    )
    compare: Compare = Field(Compare(), description="What the verdicts compare.")
    execution: Execution = Field(Execution(), description="Where and how runs happen.")
    profiles: dict[Annotated[str, Field(max_length=LONGEST_NAME)], dict[str, Any]] = Field(
        {}, max_length=MOST_PROFILES, description="Named sets of changes to this file, chosen with --profile."
    )

    def settings(self, arm: str) -> Train:
        """The training settings of an arm: the study's, with the arm's own on top."""
        own = self.arms[arm].model_dump(exclude={"methods", "preset", "model"}, exclude_unset=True)
        own = {name: value for name, value in own.items() if value is not None or _nullable(name)}
        merged = {**self.train.model_dump(exclude_unset=True), **own}
        if "epochs" in own and "steps" not in own:
            merged.pop("steps", None)  # an arm's own budget replaces the study's
        return Train.model_validate(merged)

    def data(self) -> dict[str, Any]:
        """What decides the task's data, as `load_task` takes it."""
        task = self.task.model_dump(mode="json", exclude_unset=True) if isinstance(self.task, FileTask) else self.task
        return {"spec": task, "train_on": self.train_on, "dedupe": self.dedupe}

    def model_of(self, arm: str) -> str | PresetModel:
        """The model that an arm starts from, as the study names it."""
        return getattr(self.arms[arm], "model", None) or self.model

    def methods(self, arm: str) -> tuple[MethodUse, ...]:
        return tuple(self.arms[arm].methods)


def _nullable(field: str) -> bool:
    return type(None) in get_args(Train.model_fields[field].annotation)


def study_json_schema() -> dict[str, Any]:
    """The JSON schema of a study file, with every registered method, usable by editors."""
    schema = Study.model_json_schema()
    methods = method_use_json_schema()
    schema["$defs"].update(methods.pop("$defs"))
    schema["$defs"]["MethodUse"] = methods
    schema["$defs"]["Arm"]["properties"]["methods"]["items"] = {"$ref": "#/$defs/MethodUse"}
    add_named_arms(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "fairtune study"}
