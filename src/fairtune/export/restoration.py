"""From a delta back to the whole model, every tensor proved; and what the run started from, rebuilt for that.

The start comes out of the checkpoint, the methods and the seed, so it needs no bytes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from fairtune.core.errors import LedgerError, ModelError, RunFailure
from fairtune.core.plugins import PluginError, load_module
from fairtune.core.seeding import random_state, restore_random_state
from fairtune.core.version import __version__
from fairtune.execution.start import build_start, plain_model
from fairtune.export.new_folder import new_folder, require_new
from fairtune.export.recipe import TENSORS, Recipe, read_recipe
from fairtune.export.tensors import differing, file_digests, put
from fairtune.ledger.environment import capture_environment
from fairtune.models.sources import ModelSource, file_sha256, find_model
from fairtune.models.tokenizers import load_tokenizer

MACHINE = ("python", "system", "cpu", "packages", "torch")
"""What of an environment may change the bits of a rebuilt tensor."""
COMMIT = 40
"""Digits of a hub's commit, which is the identity of a model from there; a sha256 has 64."""


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


def restore_delta(
    delta: str | Path, out: str | Path, model: str | None = None, plugins: Sequence[str | Path] = ()
) -> Restored:
    """Write the whole model of a delta, as `save_pretrained` had written it for the run.

    Args:
        delta: the folder with recipe.json and delta.safetensors.
        out: a folder that does not exist yet.
        model: where the checkpoint is, if not where its name says.
        plugins: files of plug-ins that the run's methods come from, where those are not installed. Their code is run; that it
            is what the run had is proved by the tensors.

    Raises:
        FairtuneError: the delta is damaged, the checkpoint is not the run's, or a tensor would differ from the run's.
    """
    folder, place = Path(delta), Path(out)
    require_new(place)
    for plugin in map(Path, plugins):
        if not plugin.exists():
            raise PluginError(
                f"plug-in '{plugin.stem}': there is no {plugin.name} in {plugin.absolute().parent}; give the file that the run had."
            )
        load_module(plugin.name, plugin.absolute().parent)
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


def rebuild_start(
    settings: Mapping[str, Any], source: ModelSource, labels: tuple[str, ...]
) -> tuple[PreTrainedModel, frozenset[str]]:
    """The model at step 0 as plain transformers has it, and the names of its tensors that training must not change.

    No name is given where a method wraps the model: what is frozen there may be changed when the wrapping is folded in.

    Raises:
        ModelError: this fairtune cannot build it.
    """
    try:
        with _same_randomness():
            start = build_start(settings, source, labels)
            model = plain_model(start.model, start.methods)
    except (ValidationError, PydanticCustomError) as error:
        raise ModelError(
            f"this fairtune ({__version__}) cannot build the run's methods {settings['methods']}: {_first_line(error)}."
        ) from None
    except RunFailure as error:
        raise ModelError(f"the run's start cannot be rebuilt: {error}.") from None
    if not isinstance(model, PreTrainedModel):
        raise ModelError(
            "this run's methods leave no plain transformers model, so there is no delta of it. Export it without --delta."
        )
    kept = {name for name, p in model.named_parameters() if not p.requires_grad} if model is start.model else set()
    return model, frozenset(kept)


def find_checkpoint(name: str, identity: str, given: str | None) -> ModelSource:
    """The checkpoint a run started from; whether it is that one is the caller's to check.

    Args:
        name: and identity, as the run's plan has them.
        given: where somebody says that it is.
    """
    on_hub = len(identity) == COMMIT
    if given is None and not on_hub and name != "minilm" and not Path(name).is_dir():
        raise ModelError(f"the checkpoint '{name}' is not here; give its folder with --model.")
    try:
        return find_model(given or (f"{name.partition('@')[0]}@{identity}" if on_hub else name))
    except ModelError as error:
        raise ModelError(f"{error} If the checkpoint lies elsewhere, give its folder with --model.") from None


def require_identity(source: ModelSource, identity: str, sha256: str | None = None) -> None:
    """Refuse a checkpoint that is not the run's.

    Args:
        sha256: of the checkpoint's content, by which a copy in another place is known too.
    """
    if source.identity == identity or (sha256 is not None and content_sha256(source) == sha256):
        return
    raise ModelError(
        f"model '{source.name}' is not the checkpoint that the run started from: it is {source.identity[:12]}, the run's was "
        f"{identity[:12]}. Give the right one with --model."
    )


def content_sha256(source: ModelSource) -> str:
    """sha256 of a checkpoint's config and weights, wherever it came from."""
    return find_model(str(source.fetch())).identity


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
        raise LedgerError(f"{folder} is not a whole delta: {TENSORS} is missing. Export the run again.")
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


@contextmanager
def _same_randomness() -> Iterator[None]:
    """Building seeds the global generators; afterwards they go on as if nothing had been."""
    before = random_state()
    try:
        yield
    finally:
        restore_random_state(before)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
