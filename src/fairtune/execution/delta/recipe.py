"""The recipe: everything beside the stored tensors that is needed to rebuild a run's model, and to prove it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from fairtune import __version__
from fairtune.errors import LedgerError
from fairtune.files import write_json
from fairtune.study.plan import PROTOCOL

FORMAT = 1
RECIPE, TENSORS = "recipe.json", "delta.safetensors"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Checkpoint(_Part):
    """The checkpoint that the run started from.

    Args:
        identity: as the run's plan has it: sha256 of its files, or the hub's commit.
        sha256: of its config and weights, by which a copy in any folder is known again.
    """

    name: str
    identity: str
    sha256: str
    hub_id: str | None
    revision: str | None


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

    format: int
    fairtune: str
    protocol: int
    signature: str
    checkpoint: Checkpoint
    labels: tuple[str, ...]
    settings: dict[str, Any]
    delta_sha256: str
    stored: tuple[str, ...]
    model: dict[str, str]
    model_bytes: int
    made_with: dict[str, Any]

    @field_validator("settings")
    @classmethod
    def _build_a_start(cls, settings: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(settings.get("seed"), int) or not isinstance(settings.get("methods"), list):
            raise ValueError("seed and methods are missing")
        return settings


def write_recipe(folder: Path, recipe: Recipe) -> None:
    write_json(folder / RECIPE, recipe.model_dump(mode="json"))


def read_recipe(folder: Path) -> Recipe:
    """The recipe in a delta's folder.

    Raises:
        LedgerError: there is none, it is damaged, or this fairtune cannot follow it.
    """
    file = folder / RECIPE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LedgerError(
            f"{folder} is no delta: it has no {RECIPE}. Make one with `fairtune export RUN --delta`."
        ) from None
    except OSError as error:
        raise LedgerError(f"{file} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise LedgerError(f"{file} is damaged: it is not JSON. Export the run again.") from None
    form = content.get("format") if isinstance(content, dict) else None
    if isinstance(form, int) and form > FORMAT:
        raise LedgerError(
            f"{file} was written by a newer fairtune ({content.get('fairtune')}; this is {__version__}); update fairtune."
        )
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise LedgerError(f"{file} is damaged: {where}: {first['msg']}. Export the run again.") from None
    if recipe.protocol != PROTOCOL:
        raise LedgerError(
            f"{file} was made under protocol {recipe.protocol}; this fairtune ({__version__}) has protocol {PROTOCOL} and would "
            f"build another start. Restore it with fairtune {recipe.fairtune}."
        )
    return recipe
