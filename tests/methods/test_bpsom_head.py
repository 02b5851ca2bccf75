"""BPSOMHead: the gradient that the map's prototypes put in, compared with numbers computed by hand."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.core.errors import ModelError
from fairtune.methods.bpsom.head import BPSOMHead

Array = NDArray[np.float64]
FEATURES, UNITS, CLASSES = 5, 3, 2
# The nearest cell of class 0 is reliable enough by a hair, that of class 1 is not.
LABELS, RELIABILITY = [0, 1, -1, 0], [0.95, 0.94, 0.0, 0.3]


def made_head(**settings: Any) -> BPSOMHead:
    """A head in double precision whose map has labels, and does not learn unless it is given a rate."""
    head = BPSOMHead(FEATURES, CLASSES, hidden=UNITS, grid=2, seed=3, **settings).double()
    head.som.prototypes.copy_(torch.tensor([[0.2, 0.4, 0.6], [0.7, 0.3, 0.5], [0.5, 0.5, 0.5], [0.95, 0.95, 0.95]]))
    head.som.labels.copy_(torch.tensor(LABELS))
    head.som.reliability.copy_(torch.tensor(RELIABILITY, dtype=torch.float64))
    head.rate = 0.0
    return head.train()


def made_batch(rows: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(rows, FEATURES, generator=generator, dtype=torch.float64)
    return x, torch.arange(rows) % CLASSES


def parts(head: BPSOMHead) -> tuple[Array, Array, Array, Array]:
    return tuple(p.detach().numpy() for p in (head.hidden.weight, head.hidden.bias, head.out.weight, head.out.bias))  # type: ignore[return-value]


def by_hand(head: BPSOMHead, x: Tensor, y: Tensor, prototypes: Array | None = None) -> tuple[Array, Array, list[bool]]:
    """dL/dz as the formula has it, the hidden weight's gradient from it, and which rows the map is used for.

    Args:
        prototypes: after the map learned from the batch; as they are if absent.
    """
    weight, bias, out, out_bias = parts(head)
    before, inputs, rows = head.som.prototypes.numpy(), x.numpy(), len(x)
    after = before if prototypes is None else prototypes
    h = 1 / (1 + np.exp(-(inputs @ weight.T + bias)))
    logits = h @ out.T + out_bias
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    shares[np.arange(rows), y.numpy()] -= 1
    dz = shares / rows @ out * h * (1 - h)
    used = []
    for row in range(rows):
        cells = [cell for cell, label in enumerate(LABELS) if label == int(y[row])]
        cell = min(cells, key=lambda c: float(((h[row] - before[c]) ** 2).sum()))
        used.append(RELIABILITY[cell] >= head.reliability)
        if used[-1]:
            dz[row] = (1 - head.alpha) * dz[row] + head.alpha * RELIABILITY[cell] * (h[row] - after[cell]) / rows
    return dz, dz.T @ inputs, used


def gradients(head: BPSOMHead, x: Tensor, y: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Of the pre-activations and of the hidden weight, by autograd."""
    head.zero_grad()
    kept: list[Tensor] = []
    hook = head.hidden.register_forward_hook(lambda _, __, z: kept.append(z.retain_grad() or z))
    (cross_entropy(head(x, y), y) * scale).backward()
    hook.remove()
    assert kept[0].grad is not None
    assert head.hidden.weight.grad is not None
    return kept[0].grad, head.hidden.weight.grad


def plain_gradients(head: BPSOMHead, x: Tensor, y: Tensor) -> Tensor:
    """dL/dz without the map."""
    return gradients(copy.deepcopy(head).eval(), x, y)[0]


@pytest.mark.parametrize("alpha", [0.1, 0.25, 1.0])
def test_the_gradient_is_the_one_computed_by_hand(alpha: float) -> None:
    head, (x, y) = made_head(alpha=alpha), made_batch()
    dz, weight, used = by_hand(head, x, y)
    assert {True, False} == set(used), "the batch has rows of both kinds"
    found_z, found_weight = gradients(head, x, y)
    np.testing.assert_allclose(found_z, dz, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found_weight, weight, rtol=1e-9, atol=1e-15)


def test_rows_that_are_not_used_keep_their_gradient_bit_for_bit() -> None:
    head, (x, y) = made_head(), made_batch()
    used = torch.tensor(by_hand(head, x, y)[2])
    found, plain = gradients(head, x, y)[0], plain_gradients(head, x, y)
    assert torch.equal(found[~used], plain[~used]), "not scaled by 1 - alpha"
    assert not torch.isclose(found[used], plain[used]).all(1).any()


def test_two_batches_that_make_a_step_pull_as_one() -> None:
    head, (x, y) = made_head(), made_batch(8)
    whole = gradients(head, x, y)[1].clone()
    total = torch.zeros_like(whole)
    for rows in (slice(0, 3), slice(3, 8)):
        head.loss_scale = len(x[rows]) / len(x)
        total += gradients(head, x[rows], y[rows], head.loss_scale)[1]
    torch.testing.assert_close(total, whole, rtol=1e-12, atol=1e-18)


def test_the_pull_is_to_where_the_prototypes_are_after_learning() -> None:
    head, (x, y) = made_head(), made_batch(1)
    y = torch.zeros_like(y)
    head.rate, head.radius = 0.4, 1
    h = head.activations(x).detach().numpy()[0]
    before = head.som.prototypes.numpy().copy()
    winner = int(((h - before) ** 2).sum(1).argmin())
    after = before + 0.2 * (h - before)  # every cell of a 2 x 2 map is next to the winner
    after[winner] = before[winner] + 0.4 * (h - before[winner])
    expected = by_hand(head, x, y, after)[0]
    found = gradients(head, x, y)[0]
    np.testing.assert_allclose(head.som.prototypes, after, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_cell_without_a_label_is_not_of_class_0() -> None:
    head, (x, y) = made_head(reliability=0.0), made_batch()
    head.som.labels.fill_(-1)
    head.som.reliability.fill_(1.0)
    plain = plain_gradients(head, x, y)
    assert torch.equal(gradients(head, x, y)[0], plain)
    assert head.take_use() == 0.0


def trained(head: BPSOMHead, steps: int = 4) -> dict[str, Tensor]:
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.05)
    x, y = made_batch()
    for _ in range(steps):
        gradients(head, x.float(), y)
        optimizer.step()
    return {name: p.detach() for name, p in head.named_parameters()}


def test_with_alpha_0_the_map_learns_and_the_head_does_not_know_of_it() -> None:
    watched = BPSOMHead(FEATURES, CLASSES, hidden=UNITS, grid=3, alpha=0.0, reliability=0.0, seed=5)
    start = watched.som.prototypes.clone()
    watched.label([(made_batch()[0].float(), made_batch()[1])])
    alone = BPSOMHead(FEATURES, CLASSES, hidden=UNITS, seed=5)
    first, second = trained(watched.train()), trained(alone.train())
    assert all(torch.equal(first[name], second[name]) for name in second)
    assert not torch.equal(watched.som.prototypes, start)
    assert watched.take_use() > 0, "how often the map would have been used is counted all the same"


def test_a_batch_that_is_passed_twice_teaches_the_map_once_and_pulls_each_time() -> None:
    head, (x, y) = made_head(), made_batch()
    head.rate = 0.3
    head.watch()
    gradients(head, x, y)
    once, seen = head.som.prototypes.clone(), int(head.seen)
    again = gradients(head, x, y)[0]
    assert torch.equal(head.som.prototypes, once)
    assert int(head.seen) == seen == len(x)
    assert not torch.equal(again, plain_gradients(head, x, y))
    head.watch()
    gradients(head, x, y)
    assert not torch.equal(head.som.prototypes, once)


@pytest.mark.parametrize(("settings", "expected"), [
    ({"alpha": float("nan")}, "alpha nan"),
    ({"reliability": 95}, "reliability 95; .* shares from 0 to 1"),
    ({"grid": 0}, "grid: 0"),
    ({"grid": (0, 5)}, "grid: 0 x 5"),
    ({"classes": 1}, "classes 1, .* classes at least 2"),
    ({"topology": "square"}, "topology"),
    ({"update": "online"}, "update"),
])  # fmt: skip
def test_impossible_settings_are_reported(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        BPSOMHead(FEATURES, **{"classes": 2, **settings})
