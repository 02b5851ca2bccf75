"""The recipe: everything apart from the stored tensors that is needed to rebuild a run's model, and to prove it.

A recipe may come from a stranger, so all of it is checked when it is read, before a checkpoint is looked for or anything is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from fairtune.core.errors import LedgerError, shown
from fairtune.core.files import parse_json, read_regular, write_json
from fairtune.core.version import __version__
from fairtune.methods.registry import clashes, conflicts, parse_method_use
from fairtune.settings.sections import Train
from fairtune.settings.values import (
    LONGEST_TEXT,
    MOST_CLASSES,
    MOST_METHODS,
    Column,
    Place,
    Seed,
    Whole,
)
from fairtune.study.plain_data import fault, faults, plain_copy
from fairtune.study.plan import PROTOCOL

FORMAT = 1
RECIPE, TENSORS = "recipe.json", "delta.safetensors"
LARGEST_RECIPE = 50_000_000
"""Bytes; that of a model with 1,000 tensors has about 200,000."""
MOST_TENSORS = 200_000


def _writable(text: str) -> str:
    if reason := fault(text):
        raise ValueError(reason)
    return text


def _plain_name(name: str) -> str:
    """A hub id or the name of a folder, which leads nowhere else."""
    if name.startswith("~") or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"found {shown(name)}; allowed: a hub id, or the plain name of a folder")
    return name


def _plain_mapping(value: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = plain_copy(value)
    for path, reason in faults(copied, strictly=True):
        raise ValueError(f"{'.'.join(map(str, path))}: {reason}")
    return copied


Line = Annotated[str, Field(max_length=4 * LONGEST_TEXT), AfterValidator(_writable)]
Facts = Annotated[dict[str, Any], AfterValidator(_plain_mapping)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Identity = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
CheckpointName = Annotated[Place, AfterValidator(_writable), AfterValidator(_plain_name)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Checkpoint(_Part):
    """The checkpoint that the run started from.

    Args:
        identity: as the run's plan has it: sha256 of its files, or the hub's commit.
        sha256: of its config and weights, by which a copy in any folder is known again.
    """

    name: CheckpointName
    identity: Identity
    sha256: Sha256
    hub_id: Line | None
    revision: Line | None


class Recipe(_Part):
    """What recipe.json holds.

    Args:
        settings: of the run, as its plan.json has them: methods, seed, training, task, protocol.
        delta_sha256: of delta.safetensors.
        stored: names of the tensors in delta.safetensors.
        model: sha256 of every tensor of the whole model, by its name in the model's files.
        model_bytes: size of the whole model's weights.
        made_with: library versions and processor that the delta was made and tried with.
    """

    format: Annotated[Whole, Field(ge=1)]
    fairtune: Line
    protocol: Whole
    signature: Line
    checkpoint: Checkpoint
    labels: Annotated[tuple[Column, ...], Field(min_length=1, max_length=MOST_CLASSES)]
    settings: Facts
    delta_sha256: Sha256
    stored: Annotated[tuple[Line, ...], Field(max_length=MOST_TENSORS)]
    model: Annotated[dict[Line, Sha256], Field(max_length=MOST_TENSORS)]
    model_bytes: Annotated[Whole, Field(ge=0)]
    made_with: Facts


def write_recipe(folder: Path, recipe: Recipe) -> None:
    write_json(folder / RECIPE, recipe.model_dump(mode="json"))


def read_recipe(folder: Path) -> Recipe:
    """The recipe in a delta's folder.

    Raises:
        LedgerError: there is none, it is damaged, or this fairtune cannot follow it.
    """
    file = folder / RECIPE
    try:
        content = parse_json(read_regular(file, LARGEST_RECIPE))
    except FileNotFoundError:
        raise LedgerError(
            f"{folder} is not a delta: it has no {RECIPE}. Make one with `fairtune export RUN --delta`."
        ) from None
    except OSError as error:
        raise LedgerError(f"{file} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise LedgerError(f"{file} is damaged: it is not JSON. Export the run again.") from None
    form = content.get("format") if isinstance(content, dict) else None
    if isinstance(form, int) and form > FORMAT:
        raise LedgerError(
            f"{file} was written by a newer fairtune ({_version(content)}; this is {__version__}); update fairtune."
        )
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        raise LedgerError(f"{file} is damaged: {describe_fault(error)}. Export the run again.") from None
    if recipe.protocol != PROTOCOL:
        raise LedgerError(
            f"{file} was made under protocol {shown(recipe.protocol)}; this fairtune ({__version__}) has protocol {PROTOCOL} and "
            f"would build another start. Restore it with fairtune {recipe.fairtune}."
        )
    _require_buildable(file, recipe.settings)
    return recipe


def _require_buildable(file: Path, settings: dict[str, Any]) -> None:
    """Refuse settings that no study could have had: what is not bounded here would be asked of the machine."""
    methods, train = settings.get("methods"), settings.get("train", {})
    if not isinstance(methods, list) or len(methods) > MOST_METHODS or not isinstance(train, dict):
        raise LedgerError(
            f"{file} is damaged: settings: methods must be a list of at most {MOST_METHODS}, and train a mapping. Export the run "
            "again."
        )
    try:
        TypeAdapter(Seed).validate_python(settings.get("seed"))
        Train.model_validate(train)
    except ValidationError as error:
        where = "seed" if error.title != Train.__name__ else "train"
        raise LedgerError(
            f"{file} is damaged: settings.{where}: {describe_fault(error)}. Export the run again."
        ) from None
    try:
        uses = [parse_method_use(method) for method in methods]
    except (ValidationError, PydanticCustomError) as error:
        reason = describe_fault(error) if isinstance(error, ValidationError) else str(error)
        raise LedgerError(
            f"{file}: this fairtune ({__version__}) cannot build the run's methods {shown(methods)}: {reason}.{_advice(settings)}"
        ) from None
    for position, earlier, claim in conflicts(uses):
        raise LedgerError(
            f"{file} is damaged: its methods '{uses[position].name}' and '{earlier}' both change the {claim}."
        )
    for position, reason in clashes(uses):
        raise LedgerError(f"{file} is damaged: method '{uses[position].name}': {reason}.")


def _advice(settings: dict[str, Any]) -> str:
    """What to do where methods come from plug-ins that are not here."""
    plugins = settings.get("plugins")
    modules = (
        [plugin.get("module") for plugin in plugins if isinstance(plugin, dict)] if isinstance(plugins, list) else []
    )
    if not modules:
        return ""
    return (
        f" The run had the plug-ins {', '.join(map(shown, modules))}: install them, or give their files with --plugin."
    )


def _version(content: dict[str, Any]) -> str:
    try:
        return TypeAdapter(Line).validate_python(content.get("fairtune"))
    except ValidationError:
        return "unknown"


def describe_fault(error: ValidationError) -> str:
    """The first thing that is wrong, as part of a sentence."""
    first = error.errors()[0]
    where = ".".join(shown(part).strip("'") for part in first["loc"]) or "its content"
    return f"{where}: {first['msg'].removeprefix('Value error, ').rstrip('.')}"
