"""From a delta back to the whole model, every tensor proved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fairtune.core.errors import LedgerError
from fairtune.export.placing import new_folder, require_new
from fairtune.export.rebuilding import find_checkpoint, rebuild_start, require_identity
from fairtune.export.recipe import TENSORS, Recipe, read_recipe
from fairtune.export.tensors import differing, file_digests, put
from fairtune.ledger.environment import capture_environment
from fairtune.models.sources import ModelSource, file_sha256
from fairtune.models.tokenizers import load_tokenizer

MACHINE = ("python", "system", "cpu", "packages", "torch")
"""What of an environment may change the bits of a rebuilt tensor."""


@dataclass(frozen=True)
class Restored:
    """A model that was restored, each of its tensors bit-equal to the run's."""

    out: str
    signature: str
    tensors: int
    stored: int
    model_bytes: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def restore_delta(delta: str | Path, out: str | Path, model: str | None = None) -> Restored:
    """Write the whole model of a delta, as `save_pretrained` had written it for the run.

    Args:
        delta: the folder with recipe.json and delta.safetensors.
        out: a folder that does not exist yet.
        model: where the checkpoint is, if not where its name says.

    Raises:
        FairtuneError: the delta is damaged, the checkpoint is not the run's, or a tensor would differ from the run's.
    """
    folder, place = Path(delta), Path(out)
    require_new(place)
    recipe = read_recipe(folder)
    tensors = _read_tensors(folder, recipe)
    wanted = recipe.checkpoint
    source = find_checkpoint(wanted.name, wanted.identity, model)
    require_identity(source, wanted.identity, wanted.sha256)
    with new_folder(place) as aside:
        wrong = write_whole(recipe, tensors, source, aside)
        if wrong:
            raise LedgerError(_differs(wrong, recipe))
        load_tokenizer(source.fetch()).save_pretrained(aside)
    return Restored(str(place), recipe.signature, len(recipe.model), len(recipe.stored), recipe.model_bytes)


def write_whole(recipe: Recipe, tensors: dict[str, Tensor], source: ModelSource, folder: Path) -> list[str]:
    """Rebuild, put the stored tensors in and save; returns the names of tensors that in the files are not the run's."""
    network, _ = rebuild_start(recipe.settings, source, recipe.labels)
    put(network, tensors)
    network.save_pretrained(folder)
    return differing(file_digests(folder), recipe.model)


def machine() -> dict[str, Any]:
    """What of this machine and its libraries may change the bits of a rebuilt tensor."""
    found = capture_environment("cpu")
    return {key: found[key] for key in MACHINE}


def _differs(wrong: list[str], recipe: Recipe) -> str:
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return (
        f"rebuilt here, {wrong[0]}{more} differs in bits from the run's, so nothing was written; another processor or linear "
        f"algebra library may round otherwise (the delta was made with {_machine(recipe.made_with)}; here is "
        f"{_machine(machine())}). Restore it on a machine like that one, or export the whole model there: `fairtune export RUN` "
        "without --delta."
    )


def _machine(facts: dict[str, Any]) -> str:
    known = facts.get("packages")
    packages = known if isinstance(known, dict) else {}
    return f"torch {packages.get('torch')} and transformers {packages.get('transformers')} on {facts.get('cpu')}"


def _read_tensors(folder: Path, recipe: Recipe) -> dict[str, Tensor]:
    file = folder / TENSORS
    if not file.is_file():
        raise LedgerError(f"{folder} is no whole delta: {TENSORS} is missing. Export the run again.")
    try:
        if file_sha256(file) == recipe.delta_sha256:
            tensors: dict[str, Tensor] = load_file(file)
            if tensors.keys() == set(recipe.stored):
                return tensors
    except OSError as error:
        raise LedgerError(f"{file} cannot be read ({error.strerror or error}).") from None
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError, RuntimeError):
        pass  # what its header says can be anything
    raise LedgerError(
        f"{file} is damaged: it is not what {folder.name}'s recipe was written for. Export the run again."
    )
