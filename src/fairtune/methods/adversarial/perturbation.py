"""Perturbations that climb the loss inside a ball, and passes that learn from them; in a run, and as `adversarial_backward`.

A perturbation is put on the vectors that the token embeddings give, or on their table. Hooks are gone after one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import Tensor, nn

from fairtune.core.errors import FairtuneError, ModelError, nearest
from fairtune.methods.base import Batch, Step
from fairtune.methods.registry import registered
from fairtune.models.model_parts import token_embeddings

if TYPE_CHECKING:
    from fairtune.methods.adversarial import AdversarialConfig, AscentConfig, FreeLBConfig, Norm

METHODS = ("fgm", "pgd", "freelb")
NOT_LOOKED_UP = (
    "adversarial training: the model did not look up its token embeddings; give it `input_ids`, not `inputs_embeds`."
)


def climbed(delta: Tensor | None, gradient: Tensor, size: float, config: AdversarialConfig) -> Tensor:
    """A perturbation after a step of this size up the loss, brought back to rows no longer than epsilon.

    Args:
        delta: None is no perturbation yet.
    """
    step = size * directions(gradient, config.norm)
    delta = step if delta is None else delta + step
    if config.norm == "linf":
        return delta.clamp(-config.epsilon, config.epsilon)
    length = _over_rows(delta.flatten(1).norm(dim=1), delta)
    return torch.where(length > config.epsilon, delta * (config.epsilon / length), delta)


def draw_start(real: Tensor, width: int, config: FreeLBConfig) -> Tensor:
    """A random place in the ball, [rows, length, width], as FreeLB starts; padding draws nothing.

    Of l2 each entry is uniform within epsilon / sqrt(entries), as published; of linf within epsilon.

    Args:
        real: which tokens are not padding, [rows, length].
    """
    draws = torch.rand(int(real.sum()), width, device=real.device) * 2 - 1
    delta = torch.zeros(*real.shape, width, device=real.device)
    delta[real] = config.epsilon * draws
    if config.norm == "l2":
        delta /= _over_rows((real.sum(dim=1) * width).clamp(min=1).float().sqrt(), delta)
    return delta


def directions(gradient: Tensor, norm: Norm) -> Tensor:
    """Each row of a gradient at length 1; 0 for one that is zero or not finite, which says nothing of where to go."""
    gradient = gradient.float()
    largest = gradient.flatten(1).abs().amax(dim=1)
    usable = _over_rows(largest.isfinite() & (largest > 0), gradient)
    if norm == "linf":
        return gradient.sign().where(usable, 0.0)
    scaled = gradient / _over_rows(largest, gradient)  # or squares of small gradients would be 0
    return (scaled / _over_rows(scaled.flatten(1).norm(dim=1), gradient)).where(usable, 0.0)


def _over_rows(values: Tensor, like: Tensor) -> Tensor:
    """One value per row, shaped to go with all entries of the row."""
    return values.view(-1, *[1] * (like.ndim - 1))


@contextmanager
def lookup(
    embeddings: nn.Module, change: Callable[[Tensor], Tensor] = lambda vectors: vectors
) -> Iterator[list[Tensor]]:
    """One pass through the model, in which the token vectors can be changed, and their gradient is kept; gives a list of them.

    Args:
        change: asked once; an embedding that a decoder looks up in again gives it its own.
    """
    found: list[Tensor] = []

    def at_output(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        if found:
            return None
        vectors = change(output)
        if not vectors.requires_grad:  # frozen embeddings; no leaf, as a leaf may not be changed in place
            vectors = vectors.detach().requires_grad_().clone()
        vectors.retain_grad()
        found.append(vectors)
        return vectors

    hook = embeddings.register_forward_hook(at_output)
    try:
        yield found
    finally:
        hook.remove()
    if not found:
        raise ModelError(NOT_LOOKED_UP)


def real_tokens(batch: Batch, vectors: Tensor) -> Tensor:
    """Which tokens are no padding, [batch, length]; all, where there is no mask."""
    mask = batch.get("attention_mask")
    if mask is None:
        return torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
    if mask.ndim != 2 or vectors.ndim != 3 or len(mask) != len(vectors) or mask.shape[1] > vectors.shape[1]:
        raise ModelError(
            f"adversarial training: the attention mask has shape {list(mask.shape)}, but the token vectors are "
            f"{list(vectors.shape)}; the mask must be [batch, length]."
        )
    # models that attend in blocks fill up on the right
    return nn.functional.pad(mask.bool(), (0, vectors.shape[1] - mask.shape[1]))


def of_real_tokens(seen: Sequence[Tensor], batch: Batch) -> Tensor:
    """The gradient of the vectors of a lookup, after backward."""
    if seen[0].grad is None:
        raise ModelError("adversarial training: the loss does not depend on the token embeddings.")
    return _masked(seen[0].grad, batch)


def _masked(gradient: Tensor, batch: Batch) -> Tensor:
    """In fp32, zero at padding."""
    return gradient.float().where(real_tokens(batch, gradient)[..., None], 0.0)


class Outputs:
    """Perturbations of the token vectors: a row for each example. No parameter is touched."""

    def __init__(self, step: Step) -> None:
        self.step, self.embeddings = step, token_embeddings(step.model)

    @contextmanager
    def watched(self) -> Iterator[Callable[[], Tensor]]:
        """A pass without a perturbation; after it, the function gives its gradient."""
        with lookup(self.embeddings) as seen:
            yield lambda: of_real_tokens(seen, self.step.batch)

    def gradient(self, delta: Tensor | None) -> Tensor:
        """The gradient of the loss at a perturbation, by a pass that leaves no gradients in the parameters."""
        with lookup(self.embeddings) if delta is None else self.moved(delta) as seen:
            loss = self.step.forward()
        # Scaled as backward scales it: half precision would lose small gradients. The scale itself makes no difference.
        (gradient,) = torch.autograd.grad(loss * self.step.scale, seen)
        return _masked(gradient, self.step.batch)

    def moved(self, delta: Tensor) -> AbstractContextManager[list[Tensor]]:
        """A pass with a perturbation."""
        return lookup(self.embeddings, lambda vectors: vectors + delta.to(vectors.dtype))


class Table:
    """A perturbation of the token embeddings' weights: one row for them all. They are moved for a pass and put back."""

    def __init__(self, step: Step) -> None:
        self.step, self.embeddings = step, token_embeddings(step.model)
        weight = getattr(self.embeddings, "weight", None)
        if not isinstance(weight, nn.Parameter) or not weight.requires_grad:
            raise ModelError(
                "`target: table` moves the weights of the token embeddings along their gradient, but they are frozen; use "
                "`target: output`."
            )
        self.weight = weight

    @contextmanager
    def watched(self) -> Iterator[Callable[[], Tensor]]:
        weight, own = self.weight, list[Tensor | None]()
        before, weight.grad = weight.grad, None  # of batches that came before in the same step
        try:
            yield lambda: self._own(own)
        finally:
            own.append(weight.grad)
            if before is not None:
                weight.grad = before if weight.grad is None else before + weight.grad

    def gradient(self, delta: Tensor | None) -> Tensor:
        with nullcontext() if delta is None else self.moved(delta):
            loss = self.step.forward()
            found = torch.autograd.grad(loss * self.step.scale, self.weight, allow_unused=True)
        return self._own(found)

    @staticmethod
    def _own(found: Sequence[Tensor | None]) -> Tensor:
        if found[0] is None:
            raise ModelError(NOT_LOOKED_UP)
        return found[0][None]

    @contextmanager
    def moved(self, delta: Tensor) -> Iterator[None]:
        before = self.weight.detach().clone()
        try:
            self._write(before + delta[0].to(before.dtype))
            yield
        finally:
            self._write(before)

    @torch.no_grad()
    def _write(self, value: Tensor) -> None:
        self.weight.copy_(value)
        torch.clear_autocast_cache()  # it may hold the old weights of a head that is tied to the table


@contextmanager
def _moved_at_call(place: Outputs | Table, find: Callable[[], Tensor]) -> Iterator[None]:
    """A pass with the perturbation, which is asked for when the model is called.

    By then every method of the arm has begun what it does around the pass; its state is there for the passes of `find`. The
    model is called before accelerate's autocast begins, which must not be entered twice.
    """
    entered = False
    with ExitStack() as stack:

        def at_call(_: nn.Module, __: object) -> None:
            nonlocal entered
            if not entered:
                entered = True  # before the passes that `find` makes
                stack.enter_context(cast(AbstractContextManager[object], place.moved(find())))

        for module in (place.step.model, place.embeddings):
            stack.callback(module.register_forward_pre_hook(at_call).remove)
        yield
    if not entered:
        raise ModelError(NOT_LOOKED_UP)


def learn_after_ascent(config: AscentConfig, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
    """FGM and PGD: steps up the loss lead to a perturbation, which is then learned from."""
    place = (Table if config.target == "table" else Outputs)(step)
    steps, size = config.ascent

    def climb(gradient: Tensor) -> Tensor:
        delta = climbed(None, gradient, size, config)
        for _ in range(steps - 1):
            delta = climbed(delta, place.gradient(delta), size, config)
        return delta

    if not config.clean:
        with _moved_at_call(place, lambda: climb(place.gradient(None))):
            return proceed()
    with place.watched() as gradient:
        loss = proceed()
    delta = climb(gradient())  # the clean pass gives the first gradient on its way
    with _moved_at_call(place, lambda: delta):
        step.backward(step.forward())
    return loss


def learn_while_moving(config: FreeLBConfig, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
    """FreeLB: several passes, between which the perturbation moves. As published, all have the dropout of the first."""
    clean = proceed() if config.clean else None
    embeddings, losses = token_embeddings(step.model), list[Tensor]()
    delta, generators = cast(Tensor | None, None), list[Tensor]()

    def perturb(vectors: Tensor) -> Tensor:
        nonlocal delta, generators
        sources: list[Any] = [torch]
        if vectors.device.type != "cpu":
            sources.append(torch.get_device_module(vectors.device))
        if delta is None:
            delta = draw_start(real_tokens(step.batch, vectors), vectors.shape[2], config)
            generators = [source.get_rng_state() for source in sources]
        else:
            for source, state in zip(sources, generators, strict=True):
                source.set_rng_state(state)
        return vectors + delta.to(vectors.dtype)

    with _averaged(step.model, config.steps):
        for number in range(config.steps):
            with lookup(embeddings, perturb) as seen:
                if number == 0 and clean is None:
                    losses.append(proceed())
                else:
                    loss = step.forward()
                    step.backward(loss)
                    losses.append(loss.detach())
            if number < config.steps - 1:
                delta = climbed(delta, of_real_tokens(seen, step.batch), config.step_size, config)
    return torch.stack(losses).mean() if clean is None else clean


@contextmanager
def _averaged(model: nn.Module, passes: int) -> Iterator[None]:
    """What so many passes add to the gradients counts as their mean; gradients of earlier batches are left as they are.

    The gradients are divided, not the losses: what another method puts into them on their way is then averaged as well.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    before = [parameter.grad for parameter in trainable]
    for parameter in trainable:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, earlier in zip(trainable, before, strict=True):
            if parameter.grad is None:
                parameter.grad = earlier
                continue
            parameter.grad /= passes
            if earlier is not None:
                parameter.grad += earlier


def adversarial_backward(
    model: nn.Module,
    batch: Batch,
    method: Literal["fgm", "pgd", "freelb"] = "fgm",
    *,
    forward: Callable[[], Tensor] | None = None,
    backward: Callable[[Tensor], object] | None = None,
    scale: float = 1.0,
    **settings: Any,
) -> Tensor:
    """Forward and backward of one batch with adversarial training, in place of `loss.backward()`. Returns the loss, for the log.

    The gradients are added to those that the parameters have; no parameter changes, and no hook stays on the model.

    Args:
        batch: as the model takes it, with `input_ids`; where `attention_mask` is 0, nothing is perturbed.
        forward: gives the batch's loss; if absent `model(**batch).loss`.
        backward: takes a loss and adds its gradients, such as `accelerator.backward`; if absent `(scale * loss).backward()`.
        scale: what `backward` multiplies a loss by: one over the batches that are accumulated, a loss scaler's scale.
        settings: fields of the method; `fairtune methods fgm` explains them.

    Raises:
        FairtuneError: a setting or the method is not known, or not allowed.
        ModelError: the model has no token embeddings, or does not look them up.
    """
    if method not in METHODS:
        raise FairtuneError(
            f"adversarial_backward: unknown method {method!r}; allowed: {', '.join(METHODS)}.{nearest(method, METHODS)}"
        )

    def own_forward() -> Tensor:
        loss: Tensor | None = model(**batch).loss
        if loss is None:
            raise FairtuneError(
                "adversarial_backward: the model gave no loss; put `labels` into the batch, or give `forward`."
            )
        return loss

    def own_backward(loss: Tensor) -> None:
        (loss * scale).backward()  # type: ignore[no-untyped-call]

    step: Any = SimpleNamespace(
        model=model, batch=batch, scale=scale, forward=forward or own_forward, backward=backward or own_backward
    )

    def proceed() -> Tensor:
        loss: Tensor = step.forward()
        step.backward(loss)
        return loss.detach()

    chosen: Any = registered()[method]
    loss: Tensor = chosen(chosen.config_class.read(settings, "adversarial_backward")).around_backward(step, proceed)
    return loss
