"""The schema of a study file. Each field carries its help text once; help, JSON schema and messages are made from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeGuard

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    StrictBool,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic_core import PydanticCustomError

from fairtune.methods.arms import named_arms
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import method_use_json_schema, parse_method_use
from fairtune.settings.claims import Claim
from fairtune.settings.execution import Execution
from fairtune.settings.file_task import FileTask
from fairtune.settings.learners import LEARNERS, PAIRS, SETFIT, Learner, LearnerName
from fairtune.settings.model import Model, ModelName, PresetModel, Tokenizer
from fairtune.settings.sections import AnyMetric, Compare, Timing, Train, is_nullable, optional_fields
from fairtune.settings.track import Tracked
from fairtune.settings.tune import Tune
from fairtune.settings.values import LONGEST_NAME, LONGEST_TEXT, MOST_ARMS, ArmName, Name, Section, Seeds, Whole, listed

MOST_PROFILES = 50
Note = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Field(title="a text")]
TaskName = Annotated[str, Field(max_length=LONGEST_TEXT, title="a name")]
Method = Annotated[MethodUse, PlainValidator(parse_method_use), WithJsonSchema({})]


def _known(name: str) -> str:
    if name not in (known := named_arms()):
        raise PydanticCustomError("unknown", "unknown", {"what": "named arm", "name": name, "allowed": list(known)})
    return name


ArmPreset = Annotated[str, AfterValidator(_known)]
_ARM_LIST: TypeAdapter[list[str]] = TypeAdapter(list[ArmPreset])


def is_arm_list(value: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of different named arms."""
    named = isinstance(value, list) and all(isinstance(name, str) and name in named_arms() for name in value)
    return named and len(set(value)) == len(value)


def _resolve_arms(value: Any) -> Any:
    """The arms as a mapping in which every arm has its methods or its learner; what is wrong stays, for the schema to refuse.

    In this order: the arm's own `methods` or `learner`; the named arm that `preset` says; the named arm of the same name; none.
    """
    if isinstance(value, list):
        names = _ARM_LIST.validate_python(value)
        value = dict.fromkeys(names)
        if len(value) < len(names):
            raise PydanticCustomError("repeated", "a name is given twice")
    if not isinstance(value, dict):
        return value
    known, found = named_arms(), dict[Any, Any]()
    for name, given in value.items():
        arm = found[name] = {} if given is None else given
        if not isinstance(arm, dict) or "methods" in arm or "learner" in arm:
            continue
        wanted = name if arm.get("preset") is None else arm["preset"]
        if named := known.get(wanted) if isinstance(wanted, str) else None:
            own = {field: part for field, part in arm.items() if field != "preset"}
            learned = {"methods": named.uses} if named.learner is None else {"learner": named.learner}
            found[name] = {**own, **learned}
    return found


class _ArmBase(Section):
    """One way to train: a list of methods, and any field of `train` for this arm alone."""

    methods: tuple[Method, ...] = Field((), max_length=32)
    """Changes to how the model is trained, applied in this order; if absent, those of the named arm that `preset` or else the arm's
    own name says."""
    preset: ArmPreset | None = None
    """Take the methods of this named arm; `fairtune methods` shows what each does."""
    learner: LearnerName | None = None
    """Learn without fine-tuning, as a simple baseline does; if absent, the one that `preset` or else the arm's own name says."""
    pairs: Whole | None = Field(
        None,
        ge=1,
        le=1000,
        description=f"Of setfit: pairs of the same class, and as many of different classes, that a pass has for each training "
        f"example; {PAIRS} if absent.",
    )
    model: ModelName | None = None
    """Start from this checkpoint instead of the study's model, for this arm alone; it has its own tokenizer."""


Arm = create_model("Arm", __base__=_ArmBase, __doc__=_ArmBase.__doc__, **optional_fields(Train))


class Study(Section):
    """A study: task x model x arms x seeds."""

    study: Name
    """Name of the study; its runs are kept under this name."""
    task: TaskName | FileTask
    """A task of the catalogue by name, or your own files."""
    model: Model
    """`minilm` (embedded), a folder, a hub id with an optional `@revision`, or a preset that is trained from scratch, such as
    gpt-mini."""
    tokenizer: Tokenizer | None = None
    """The tokenizer of a folder or a hub id, or one that is trained on the training text; null takes the checkpoint's own."""
    train_on: TaskName | None = Field(None, min_length=1)
    """Train on the training split of this task instead; it must have the same labels."""
    dedupe: bool = Field(False, strict=True)
    """Take out of the training split what occurs twice, what has contradictory labels, and what is also in the validation or test
    split."""
    allow_contamination: bool = Field(False, strict=True)
    """Run although the training split is known to hold much of what is reported."""
    metric: AnyMetric | None = None
    """The figure that selects checkpoints and decides verdicts; null is the task's own."""
    train: Train = Train()
    """Training settings that all arms share."""
    seeds: Seeds = (0, 1, 2, 3, 4)
    """How many seeds, or a list of them; each arm runs once with each."""
    prompts: tuple[Annotated[str, Field(min_length=1)], ...] | None = Field(None, min_length=1)
    """Texts that the language models of all arms go on with in the report; null takes the beginnings of some validation texts."""
    arms: Annotated[dict[ArmName, Arm], BeforeValidator(_resolve_arms)] = Field(min_length=1, max_length=MOST_ARMS)
    """The ways to train that are compared, by name; or a list of named arms, taken as they are."""
    controls: bool = Field(False, strict=True)
    """Add a control for every arm whose methods and settings could not be told apart: an arm without methods with the same
    settings."""
    aa: bool = Field(False, strict=True)
    """Add a second copy of the arm that the others are compared to, with other random numbers: what it differs by is noise."""
    tune: Tune | None = None
    """Choose settings for every arm by the same number of trials over the same space, on validation, before the runs that are
    reported; null takes them as given."""
    order: Literal["crossover", "sequential", "random"] = "crossover"
    """Order of runs. crossover: seed by seed, arms forwards then backwards; sequential: arm by arm; random: shuffled by the plan's
    hash."""
    compare: Compare = Compare()
    """What the verdicts compare."""
    claims: tuple[Claim, ...] = ()
    """What is claimed of the arms, each answered at the top of the report: supported, contradicted, not separable, implausible or
    not yet run. They change no run; one that is written after results are known is marked so."""
    notes: Annotated[tuple[Note, ...], BeforeValidator(listed, Note | list[Note])] = ()
    """Findings and problems in your own words, shown as such in the report: a text, or a list of texts. They are not part of the
    plan, so they can be written when the results are known: run the study again, and no run is repeated."""
    execution: Execution = Execution()
    """Where and how runs happen."""
    time: StrictBool | Timing = False
    """Time the arms against each other once their runs are finished, as `fairtune time` does: true, or how long and how precisely.
    The report then takes all its times from there."""
    track: Tracked | None = None
    """Send the study's ledger to trackers while it runs, as `fairtune track` does: a list of trackers, or each with its
    settings."""
    plugins: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Python modules that add methods or tasks: a file or a folder beside this file, such as my_module, or one that Python can
    import. They are run as soon as the study is read."""
    profiles: dict[Annotated[str, Field(max_length=LONGEST_NAME)], dict[str, Any]] = Field({}, max_length=MOST_PROFILES)
    """Named sets of changes to this file, chosen with --profile."""

    @property
    def timing(self) -> Timing | None:
        """How its arms are timed; None where they are not."""
        return (Timing() if self.time else None) if isinstance(self.time, bool) else self.time

    def settings(self, arm: str) -> Train:
        """The training settings of an arm: the study's, with the arm's own on top."""
        own = self.arms[arm].model_dump(exclude={"methods", "preset", "learner", "pairs", "model"}, exclude_unset=True)
        own = {name: value for name, value in own.items() if value is not None or is_nullable(name)}
        merged = {**self.train.model_dump(exclude_unset=True), **own}
        if "epochs" in own and "steps" not in own:
            merged.pop("steps", None)  # an arm's own budget replaces the study's
        learner = self.learner(arm)
        if learner is not None and learner.epochs is not None and not {"epochs", "steps"} & own.keys():
            merged = {**merged, "epochs": learner.epochs, "steps": None}  # its passes are over something else
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

    def learner(self, arm: str) -> Learner | None:
        """What an arm learns with; None where it is fine-tuned."""
        name = getattr(self.arms[arm], "learner", None)
        return None if name is None else LEARNERS[name]

    def pairs(self, arm: str) -> int | None:
        """Pairs of each kind that a pass has for each training example; None where an arm does not learn from pairs."""
        learner = self.learner(arm)
        if learner is None or learner.name != SETFIT:
            return None
        return getattr(self.arms[arm], "pairs", None) or PAIRS

    def uses_model(self, arm: str) -> bool:
        """Whether the model has any part in an arm."""
        learner = self.learner(arm)
        return learner is None or learner.encoder


def _add_named_arms(schema: dict[str, Any]) -> None:
    """Put the named arms, and the list form of `arms`, into the JSON schema of a study."""
    schema["$defs"]["NamedArm"] = {
        "type": "string",
        "enum": list(named_arms()),
        "description": "A named arm; one with settings of its own is written `NAME: {lr: 1e-4}`, in a mapping of arms.",
    }
    arm = schema["$defs"]["Arm"]
    arm["properties"]["preset"]["anyOf"][0] = {"$ref": "#/$defs/NamedArm"}
    arm["not"] = {"required": ["methods", "preset"], "properties": {"preset": {"type": "string"}}}
    mapping = schema["properties"]["arms"]
    shared = {key: mapping.pop(key) for key in ("title", "description")}
    names = {"type": "array", "items": {"$ref": "#/$defs/NamedArm"}, "minItems": 1, "uniqueItems": True}
    schema["properties"]["arms"] = {"anyOf": [mapping, names], **shared}


def study_json_schema() -> dict[str, Any]:
    """The JSON schema of a study file, with every registered method, usable by editors."""
    schema = Study.model_json_schema()
    methods = method_use_json_schema()
    schema["$defs"].update(methods.pop("$defs"))
    schema["$defs"]["MethodUse"] = methods
    schema["$defs"]["Arm"]["properties"]["methods"]["items"] = {"$ref": "#/$defs/MethodUse"}
    _add_named_arms(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "fairtune study"}
