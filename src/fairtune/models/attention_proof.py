"""Proof that the linear maps an attention module calls q and k are its queries and keys: what a forward pass shows, not names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.models.model_parts import only_base, run_tokens
from fairtune.models.split_projection import rows_of

LENGTH = 6
"""Tokens of the text in which queries and keys must matter; in a text of one token they must not."""


Outputs = list[tuple[nn.Module, Tensor]]
"""What modules gave, in the order in which they finished."""


class AttentionProof:
    """Looks into one model; each answer takes a few passes of a short text through it."""

    def __init__(self, model: nn.Module) -> None:
        self._base = only_base(model)
        run_tokens(self._base, LENGTH)  # what a model sets up at its first text is there from now on
        self._calm = {length: self._outputs(length) for length in (LENGTH, 1)}

    def reaches(self, attention: nn.Module) -> bool:
        """Whether text gets there at all; images and sounds may have layers of their own."""
        return any(module is attention for module, _ in self._calm[LENGTH])

    def problem(self, attention: nn.Module, projection: nn.Module) -> str | None:
        """Why a linear map is not a plain query or key of an attention module; None if it is.

        Noise on its output must change what the attention module gives for a text, and nothing that was computed before. Of a
        single token, which attends to itself alone whatever its query and key are, noise must change nothing.
        """
        calm, noisy = self._calm[LENGTH], self._outputs(LENGTH, projection)
        start = next((place for place, (module, _) in enumerate(calm) if module is projection), None)
        if start is None:
            return "it is not called"
        if not all(torch.equal(was, now) for (_, was), (_, now) in zip(calm[:start], noisy[:start], strict=True)):
            return "it changes what was computed before it"
        if all(torch.equal(was, now) for was, now in _pairs(attention, calm, noisy)):
            return "attention does not depend on it"
        if not all(_close(was, now) for was, now in _pairs(attention, self._calm[1], self._outputs(1, projection))):
            return "it decides more than how tokens attend to each other"
        return None

    def _outputs(self, length: int, shaken: nn.Module | None = None) -> Outputs:
        """What every module gives, with noise on the output of one of them."""
        seen: Outputs = []

        def note(module: nn.Module, _: object, output: Any) -> None:
            first = output[0] if isinstance(output, list | tuple) and output else output
            if isinstance(first, Tensor):
                seen.append((module, first.clone()))

        def shake(_: nn.Module, __: object, output: Tensor) -> Tensor:
            noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(len(seen)))
            return output + noise.to(output)

        hooks = [] if shaken is None else [shaken.register_forward_hook(shake)]
        hooks += [module.register_forward_hook(note) for module in self._base.modules()]
        try:
            run_tokens(self._base, length)
        finally:
            for hook in hooks:
                hook.remove()
        return seen


def _pairs(module: nn.Module, first: Outputs, second: Outputs) -> list[tuple[Tensor, Tensor]]:
    """What one module gave in two passes, call by call."""
    return [(was, now) for (called, was), (_, now) in zip(first, second, strict=True) if called is module]


def _close(was: Tensor, now: Tensor) -> bool:
    """Whether two tensors are equal but for rounding."""
    return bool((was - now).abs().max() <= 16 * torch.finfo(was.dtype).eps * was.abs().max())


def prove(model: nn.Module, found: dict[str, tuple[nn.Module, nn.Module, nn.Module]]) -> set[str]:
    """Prove queries and keys, once for each class and shape of attention module in this process.

    Args:
        found: by the attention module's name: the module, its map of queries, its map of keys.

    Returns:
        The names of those that text reaches.
    """
    keys = {
        name: (type(attention), *(tuple(rows_of(projection).shape) for projection in projections))
        for name, (attention, *projections) in found.items()
    }
    if any(parameter.is_meta for parameter in model.parameters()):
        return set(found)  # shapes without weights can be counted, and nothing else
    proof: AttentionProof | None = None
    for name, (attention, *projections) in reversed(found.items()):  # the last one, so that much is before it
        if _reached.get(keys[name]):
            continue
        proof = proof or AttentionProof(model)
        if not proof.reaches(attention):
            _reached.setdefault(keys[name], False)
            continue
        for part, projection in zip(("queries", "keys"), projections, strict=True):
            if problem := proof.problem(attention, projection):
                raise ModelError(
                    f"what looks like the {part} of {type(attention).__name__} at {name} is not: {problem}. "
                    "Describe it with fairtune.register_attention(CLASS, {ATTRIBUTE: PARTS}, heads=ATTRIBUTE)."
                )
        _reached[keys[name]] = True
    return {name for name in found if _reached[keys[name]]}


_reached: dict[tuple[Any, ...], bool] = {}
