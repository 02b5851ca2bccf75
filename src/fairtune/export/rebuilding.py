"""Rebuilding what a run started from, out of its checkpoint, its methods and its seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError
from transformers import PreTrainedModel

from fairtune.core.errors import ModelError, RunFailure
from fairtune.core.seeding import random_state, restore_random_state
from fairtune.core.version import __version__
from fairtune.execution.start import build_start, plain_model
from fairtune.models.sources import ModelSource, find_model

COMMIT = 40
"""Digits of a hub's commit, which is the identity of a model from there; a sha256 has 64."""


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
