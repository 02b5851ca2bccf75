"""What of a model its checkpoint had no weights for. A fresh head is as it should be; a fresh encoder is another experiment."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from torch import nn
from transformers import PreTrainedModel

from fairtune.core.errors import ModelError
from fairtune.models.folders import CONFIG, weight_files
from fairtune.models.heads import base_model
from fairtune.models.transformers_files import tensor_shapes

FEW, LONGEST = 3, 100
"""Names that a message has room for, and their length."""


def notes_of_fresh(
    network: PreTrainedModel, missing: Collection[str], mismatched: Collection[str], folder: Path, what: str
) -> tuple[str, ...]:
    """What must be told of tensors, beside the head's, that were drawn at random.

    Args:
        missing: tensors that the checkpoint does not have.
        mismatched: that it has in another shape.

    Raises:
        ModelError: the encoder is mostly fresh, or the config is not the weights'.
    """
    base, encoder = _named(network, base_model(network)), _named(network, _encoder(network))
    wrong = sorted(name for name in mismatched if name in base)
    if wrong:
        raise ModelError(
            f"{what}: {len(wrong)} tensors have another shape in its weights than its {CONFIG} says ({_few(wrong)}); one of the "
            "two is not of this model."
        )
    fresh = {name: parameter for name, parameter in encoder.items() if name in missing}
    if 2 * len(fresh) > len(encoder) or 2 * _elements(fresh.values()) > _elements(encoder.values()):
        held = sorted(tensor_shapes(weight_files(folder, what), what))
        raise ModelError(
            f"{what}: its checkpoint has no weights for {len(fresh)} of the {len(encoder)} tensors of {type(network).__name__}'s "
            f"encoder ({_elements(fresh.values()):,} of {_elements(encoder.values()):,} parameters), such as {_few(fresh)}, so it "
            f"would be trained from random weights. Its {len(held)} tensors are called {_few(held)}; is its {CONFIG} that of "
            "another model?"
        )
    others = [name for name in base if name in missing]
    if not others:
        return ()
    return (
        f"{what}: its checkpoint has no weights for {len(others)} of the {len(base)} tensors below the head ({_few(others)}); they "
        "start from random values.",
    )


def _encoder(network: PreTrainedModel) -> nn.Module:
    """The base model; of an encoder-decoder the encoder, which also stands without its decoder."""
    base = base_model(network)
    encoder, decoder = (getattr(base, name, None) for name in ("encoder", "decoder"))
    return encoder if isinstance(encoder, nn.Module) and isinstance(decoder, nn.Module) else base


def _named(network: nn.Module, part: nn.Module) -> dict[str, nn.Parameter]:
    """A part's parameters by the whole network's names."""
    own = {id(parameter) for parameter in part.parameters()}
    return {name: parameter for name, parameter in network.named_parameters() if id(parameter) in own}


def _elements(parameters: Iterable[nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters)


def _few(names: Iterable[str]) -> str:
    every = [name if name.isprintable() and len(name) <= LONGEST else repr(name[:LONGEST]) for name in names]
    return ", ".join(every[:FEW]) + (f" and {len(every) - FEW} more" if len(every) > FEW else "")
