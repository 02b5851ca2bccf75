"""Where a perturbation is put: on the vectors that the token embeddings give, or on their table. Hooks are gone after one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

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


class Pass(Protocol):
    """What is needed of a batch's way through the model: of a run's `Step`, or of a loop of one's own."""

    @property
    def model(self) -> nn.Module: ...

    @property
    def batch(self) -> Batch: ...

    @property
    def scale(self) -> float:
        """What a loss is multiplied by on its way back."""

    def uniform(self, tokens: int, width: int) -> Tensor:
        """Numbers from 0 to 1, a row for each real token of the batch."""

    def forward(self) -> Tensor:
        """The loss."""

    def backward(self, loss: Tensor) -> None:
        """Add the loss's gradients."""


class Place(Protocol):
    """Perturbations and gradients here have one row for each perturbation that is measured by itself."""

    def watched(self) -> AbstractContextManager[Callable[[], Tensor]]:
        """A pass without a perturbation; after it, the function gives its gradient."""

    def gradient(self, delta: Tensor | None) -> Tensor:
        """The gradient of the loss at a perturbation, by a pass that leaves no gradients in the parameters."""

    def applied(self, find: Callable[[], Tensor]) -> AbstractContextManager[None]:
        """A pass with the perturbation, which is asked for when the model is called.

        By then every method of the arm has begun what it does around the pass; its state is there for the passes of `find`.
        """


@dataclass(frozen=True)
class Outputs:
    """The token vectors: a row for each example. No parameter is touched."""

    step: Pass
    embeddings: nn.Module

    @contextmanager
    def watched(self) -> Iterator[Callable[[], Tensor]]:
        with lookup(self.embeddings) as seen:
            yield lambda: of_real_tokens(seen.gradient, self.step.batch)

    def gradient(self, delta: Tensor | None) -> Tensor:
        with lookup(self.embeddings, lambda vectors: None if delta is None else perturbed(vectors, delta)) as seen:
            loss = self.step.forward()
        assert seen.vectors is not None, "or the lookup would have raised"
        # Scaled as backward scales it: half precision would lose small gradients. The scale itself makes no difference.
        (gradient,) = torch.autograd.grad(loss * self.step.scale, seen.vectors)
        return of_real_tokens(gradient, self.step.batch)

    def applied(self, find: Callable[[], Tensor]) -> AbstractContextManager[None]:
        def enter() -> AbstractContextManager[object]:
            delta = find()
            return lookup(self.embeddings, lambda vectors: perturbed(vectors, delta))

        return _entered_at_call((self.step.model, self.embeddings), enter)


@dataclass(frozen=True)
class Table:
    """The weights of the token embeddings: one row for them all. They are moved for a pass and put back from a copy."""

    step: Pass
    embeddings: nn.Module

    @property
    def weight(self) -> nn.Parameter:
        return table_of(self.embeddings)

    @contextmanager
    def watched(self) -> Iterator[Callable[[], Tensor]]:
        weight, own = self.weight, list[Tensor]()
        before, weight.grad = weight.grad, None  # of batches that came before in the same step

        def gradient() -> Tensor:
            if not own:
                raise ModelError(NOT_LOOKED_UP)
            return own[0][None]

        try:
            yield gradient
        finally:
            if self.weight.grad is not None:
                own.append(self.weight.grad)
            if before is not None:
                weight.grad = before + own[0] if own else before

    def gradient(self, delta: Tensor | None) -> Tensor:
        with ExitStack() as stack:
            if delta is not None:
                stack.enter_context(self._moved(delta))
            loss = self.step.forward()
            (gradient,) = torch.autograd.grad(loss * self.step.scale, self.weight, allow_unused=True)
        if gradient is None:
            raise ModelError(NOT_LOOKED_UP)
        return gradient[None]

    def applied(self, find: Callable[[], Tensor]) -> AbstractContextManager[None]:
        return _entered_at_call((self.step.model, self.embeddings), lambda: self._moved(find()))

    @contextmanager
    def _moved(self, delta: Tensor) -> Iterator[None]:
        weight = self.weight
        before = weight.detach().clone()
        try:
            _write(weight, before + delta[0].to(before.dtype))
            yield
        finally:
            _write(weight, before)


@contextmanager
def _entered_at_call(
    modules: Sequence[nn.Module], enter: Callable[[], AbstractContextManager[object]]
) -> Iterator[None]:
    """Within it, the first call of one of the modules enters what `enter` gives, once; it is left at the end.

    The model is called before accelerate's autocast begins, which must not be entered twice; its embeddings are called also
    where a language model is gone through in halves.
    """
    entered = False
    with ExitStack() as stack:

        def at_call(_: nn.Module, __: object) -> None:
            nonlocal entered
            if not entered:
                entered = True  # before the passes that `enter` makes
                stack.enter_context(enter())

        for module in modules:
            stack.callback(module.register_forward_pre_hook(at_call).remove)
        yield
    if not entered:
        raise ModelError(NOT_LOOKED_UP)


@torch.no_grad()
def _write(weight: nn.Parameter, value: Tensor) -> None:
    weight.copy_(value)
    torch.clear_autocast_cache()  # it may hold the old weights of a head that is tied to the table


def table_of(embeddings: nn.Module) -> nn.Parameter:
    """The weights of token embeddings.

    Raises:
        ModelError: they are frozen.
    """
    weight = getattr(embeddings, "weight", None)
    if not isinstance(weight, nn.Parameter) or not weight.requires_grad:
        raise ModelError(
            "`target: table` moves the weights of the token embeddings along their gradient, but they are frozen; use "
            "`target: output`."
        )
    return weight
