"""Losses of tokens from the last hidden states, a few rows at a time: the logits of a batch are never held whole.

The logits are by far the largest tensor of a small language model: 2,048 tokens of a vocabulary of 50,257 take 393 MiB in
fp32, and the plain way holds them three times (logits, their log-softmax, its gradient). Here a chunk of rows becomes logits,
then losses, then the gradient, in one buffer, and the gradient goes at once into those of the weight and of the hidden
states. The matrix products are the same three; what lies between them is fewer passes over less memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

IGNORED = -100
# A chunk's logits in fp32, of which there are two: before and after the softmax. Larger chunks bring little more speed; smaller
# ones make thin products and re-read the weight and its gradient too often, which a GPU, quick at products, feels sooner.
CPU_CHUNK_BYTES, GPU_CHUNK_BYTES = 64 << 20, 256 << 20
FEWEST_ROWS = 64
ALIGNED = 64  # columns; rows that begin off a cache line (50,257 is odd) slow the product that fills them by a third

Needs = tuple[bool, bool, bool]


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The mean cross-entropy of `hidden @ weight.T + bias` against `targets`, in fp32 (fp64 if hidden is).

    The products are in autocast's type where that is on. It can be differentiated once; a second time is refused.

    Args:
        hidden: [tokens, width].
        weight: [vocabulary, width].
        targets: [tokens]; -100 is ignored, and the mean is over the others. The mean over none is 0, with gradients of 0.
    """
    enabled = torch.is_grad_enabled()  # inside the function it is always off
    needs = tuple(enabled and one is not None and one.requires_grad for one in (hidden, weight, bias))
    loss: Tensor = _LinearCrossEntropy.apply(hidden, weight, bias, targets, needs)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_losses(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Every token's loss in fp32, and whether the likeliest token is the target; an ignored one has 0 and False."""
    keep = targets != IGNORED
    targets = targets.where(keep, 0)
    logits = _Logits(hidden, weight, bias)
    losses = torch.empty(targets.shape, dtype=logits.precise, device=hidden.device)
    correct = torch.empty_like(keep)
    for rows in logits.chunks():
        losses[rows] = -logits.scores.gather(1, targets[rows, None]).squeeze(1)
        correct[rows] = logits.products.argmax(1) == targets[rows]
    return losses.masked_fill_(~keep, 0.0).float(), correct.logical_and_(keep)


class _LinearCrossEntropy(torch.autograd.Function):
    """Makes the gradients in the forward pass; the backward pass scales them."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, needs: Needs) -> Tensor:
        keep = targets != IGNORED
        targets = targets.where(keep, 0)
        count = keep.sum().clamp_(min=1)
        logits = _Logits(hidden, weight, bias)
        losses = torch.empty(targets.shape, dtype=logits.precise, device=hidden.device)
        gradients = [
            torch.empty(one.shape, dtype=logits.precise, device=one.device) if one is not None and need else None
            for one, need in zip((hidden, weight, bias), needs, strict=True)
        ]
        # What only a CPU can be asked without waiting for it: how many tokens count, and whether all do.
        now = hidden.device.type == "cpu" and not logits.short
        factor = 1 / float(count) if now else 1.0
        kept = None if now and bool(keep.all()) else keep
        for rows in logits.chunks():
            target = targets[rows, None]
            losses[rows] = -logits.scores.gather(1, target).squeeze(1)
            if any(needs):
                logits.scores.exp_()
                logits.scores.scatter_(1, target, logits.scores.gather(1, target) - 1)
                logits.differentiate(rows, factor, None if kept is None else kept[rows, None], *gradients)
        ctx.save_for_backward(torch.ones_like(count) if now else count, *gradients)
        ctx.types = [None if one is None else one.dtype for one in (hidden, weight, bias)]
        return losses.masked_fill_(~keep, 0.0).sum() / count

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph: the gradients made above would count as constants
            raise RuntimeError(
                "linear_cross_entropy can be differentiated once only; use the model's own loss for more."
            )
        count, *gradients = ctx.saved_tensors
        # With 16-bit products the mean comes in only here, in fp32 and together with the loss scale that `grad_output`
        # carries: divided by the number of tokens before, they would have underflowed.
        scale = grad_output / count
        if scale.device.type != "cpu" or scale != 1:  # else a pass over the gradients and a copy of them are spared
            gradients = [None if one is None else one * scale for one in gradients]
        found = (None if one is None else one.to(dtype) for one, dtype in zip(gradients, ctx.types, strict=True))
        return *found, None, None


class _Logits:
    """The logits of a linear head, a chunk of rows at a time, always in the same memory.

    Attributes:
        precise: the type of losses and sums.
        short: whether the products are in a shorter one.
        products: the present chunk of the logits.
        scores: their log-softmax, for the caller to turn into their gradient.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        device = hidden.device.type
        self.precise = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        cast = torch.is_autocast_enabled(device) and hidden.dtype != torch.float64
        dtype = torch.get_autocast_dtype(device) if cast else hidden.dtype
        self.short = dtype != self.precise
        self.hidden, self.weight = hidden.detach().to(dtype), weight.detach().to(dtype)
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.tokens, self.vocabulary = len(hidden), len(weight)
        most = (CPU_CHUNK_BYTES if device == "cpu" else GPU_CHUNK_BYTES) // (4 * self.vocabulary)
        chunks = max(1, math.ceil(self.tokens / max(most, FEWEST_ROWS)))
        self.rows = math.ceil(self.tokens / chunks)  # all alike, so that none is thin
        shape = self.rows, math.ceil(self.vocabulary / ALIGNED) * ALIGNED
        self._products = hidden.new_empty(shape, dtype=dtype)
        self._scores = hidden.new_empty(shape, dtype=self.precise)

    def chunks(self) -> Iterator[slice]:
        """Make each chunk in turn; there is always one, be it empty."""
        for start in range(0, max(self.tokens, 1), max(self.rows, 1)):
            rows = slice(start, min(start + self.rows, self.tokens))
            self.part = self.hidden[rows]
            products, scores = self._products[: len(self.part)], self._scores[: len(self.part)]
            self.products, self.scores = products[:, : self.vocabulary], scores[:, : self.vocabulary]
            torch.mm(self.part, self.weight.t(), out=self.products)
            if self.bias is not None:
                self.products.add_(self.bias)
            products[:, self.vocabulary :] = -math.inf  # so that whole rows, in one piece, have the same softmax
            torch.log_softmax(products, 1, dtype=self.precise, out=scores)
            yield rows

    def differentiate(
        self,
        rows: slice,
        factor: float,
        kept: Tensor | None,
        of_hidden: Tensor | None,
        of_weight: Tensor | None,
        of_bias: Tensor | None,
    ) -> None:
        """Bring the chunk into the gradients; the gradient of its logits is in the scores, but for `factor`.

        Args:
            kept: which rows count, [rows, 1]; None is all.
        """
        old, part, slopes = 0 if rows.start == 0 else 1, self.part, self.scores
        if self.short:
            slopes = self.products.copy_(self.scores)
        if of_hidden is not None:
            _add_product(of_hidden[rows], slopes, self.weight, 0, factor)
            if kept is not None:
                of_hidden[rows].mul_(kept)
        if kept is not None:
            part = part * kept
        if of_weight is not None:
            _add_product(of_weight, slopes.t(), part, old, factor)
        if of_bias is not None:
            ones = slopes.new_ones(len(part), 1) if kept is None else kept.to(slopes.dtype)
            _add_product(of_bias[:, None], slopes.t(), ones, old, factor)


def _add_product(total: Tensor, a: Tensor, b: Tensor, old: int, factor: float) -> None:
    """total = old * total + factor * a @ b, where `old` is 0 or 1 and the product's type may be shorter than the total's."""
    if a.dtype == total.dtype:
        total.addmm_(a, b, beta=old, alpha=factor)
    elif old:
        total.add_(a @ b)
    else:
        total.copy_(a @ b)
