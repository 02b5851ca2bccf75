"""The output of the token embeddings as the place of a perturbation. Hooks are there for one pass and gone after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.methods.base import Batch

NOT_LOOKED_UP = (
    "adversarial training: the model did not look up its token embeddings; give it `input_ids`, not `inputs_embeds`."
)


class Lookup:
    """The token vectors of one pass, [batch, length, width], as the model goes on with them."""

    vectors: Tensor | None = None

    @property
    def gradient(self) -> Tensor:
        """Of the loss, after backward."""
        if self.vectors is None or self.vectors.grad is None:
            raise ModelError("adversarial training: the loss does not depend on the token embeddings.")
        return self.vectors.grad


@contextmanager
def lookup(embeddings: nn.Module, change: Callable[[Tensor], Tensor | None] = lambda _: None) -> Iterator[Lookup]:
    """One pass through the model, in which the token vectors can be changed, and their gradient is kept.

    Args:
        change: takes the vectors and gives others, or None to leave them as they are. It is asked once: an embedding that a
            decoder looks up in again gives it its own.
    """
    found = Lookup()

    def at_output(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        if found.vectors is not None:
            return None
        changed = change(output)
        vectors = output if changed is None else changed
        if not vectors.requires_grad:  # frozen embeddings; no leaf, as a leaf may not be changed in place
            vectors = vectors.detach().requires_grad_().clone()
        vectors.retain_grad()
        found.vectors = vectors
        return vectors

    hook = embeddings.register_forward_hook(at_output)
    try:
        yield found
    finally:
        hook.remove()
    if found.vectors is None:
        raise ModelError(NOT_LOOKED_UP)


def real_tokens(batch: Batch, vectors: Tensor) -> Tensor:
    """Which tokens are no padding, [batch, length]; all, where there is no mask.

    Raises:
        ModelError: the mask and the vectors are not of the same examples.
    """
    if vectors.ndim != 3:
        raise ModelError(
            f"adversarial training: the token embeddings give vectors of shape {list(vectors.shape)}, not [batch, length, width]."
        )
    mask = batch.get("attention_mask")
    if mask is None:
        return torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
    more = vectors.shape[1] - mask.shape[1] if mask.ndim == 2 else -1
    if more < 0 or len(mask) != len(vectors):
        raise ModelError(
            f"adversarial training: the attention mask has shape {list(mask.shape)}, but the token vectors are "
            f"{list(vectors.shape)}; the mask must be [batch, length]."
        )
    return nn.functional.pad(mask.bool(), (0, more))  # models that attend in blocks fill up on the right


def of_real_tokens(gradient: Tensor, batch: Batch) -> Tensor:
    """The gradient in fp32, zero at padding."""
    return gradient.float().where(real_tokens(batch, gradient)[..., None], 0.0)


def perturbed(vectors: Tensor, delta: Tensor) -> Tensor:
    return vectors + delta.to(vectors.dtype)
