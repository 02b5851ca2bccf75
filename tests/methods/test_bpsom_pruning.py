"""Pruning a BP-SOM head: what is left computes, trains, saves and loads on, and the rest is explained by its variation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.pruning import prune, units_to_keep

FEATURES, UNITS, CLASSES, ROWS = 6, 8, 3, 40
KEEP = torch.tensor([True, False, True, True, False, True, False, True])
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
}


def made_head() -> BPSOMHead:
    return BPSOMHead(FEATURES, CLASSES, hidden=UNITS, grid=3, reliability=0.4, seed=2)


def examples() -> tuple[Tensor, Tensor]:
    x = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(4))
    return x, torch.arange(ROWS) % CLASSES


def train(head: BPSOMHead, optimizer: torch.optim.Optimizer, steps: int = 3) -> Tensor:
    x, y = examples()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(head.train()(x, y), y)
        loss.backward()
        optimizer.step()
    return loss


def test_the_answer_changes_by_no_more_than_the_variation_that_was_removed() -> None:
    head, (x, y) = made_head().eval().double(), examples()
    x = x.double()
    found = head.label([(x, y)])
    h, out = head.activations(x).detach(), head.out.weight.detach().clone()
    before = head(x).detach()
    prune(head, KEEP, found.mean)
    change = (head(x).detach() - before).abs()
    allowed = (h - found.mean)[:, ~KEEP].abs() @ out[:, ~KEEP].abs().T
    assert bool((change <= allowed + 1e-12).all())
    assert float(change.max()) > 0.1 * float(allowed.max()), "it is the variation, not less"


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_optimizer_goes_on_with_what_is_left(kind: str) -> None:
    """A pruned head trains exactly as one that was built so, with the same moments."""
    head = made_head()
    optimizer = OPTIMIZERS[kind](head.parameters())
    found = head.label([examples()])
    held = train(head, optimizer)  # its graph is alive while units are removed
    named = dict(head.named_parameters())
    moments = {
        name: {key: value.clone() for key, value in optimizer.state[p].items() if isinstance(value, Tensor)}
        for name, p in named.items()
    }
    prune(head, KEEP, found.mean, optimizer)
    assert all(p is named[name] for name, p in head.named_parameters()), "the very same parameters"
    for name, p in named.items():
        rows = {"hidden.weight": (KEEP,), "hidden.bias": (KEEP,), "out.weight": (slice(None), KEEP)}.get(name, (...,))
        for key, value in optimizer.state[p].items():
            if isinstance(value, Tensor):
                assert torch.equal(value, moments[name][key] if value.ndim == 0 else moments[name][key][rows])

    other = BPSOMHead(FEATURES, CLASSES, hidden=int(KEEP.sum()), grid=3, reliability=0.4)
    other.load_state_dict(head.state_dict())
    fresh = OPTIMIZERS[kind](other.parameters())
    fresh.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    before = head.hidden.weight.detach().clone()
    train(head, optimizer)
    train(other, fresh)
    assert not torch.equal(head.hidden.weight, before)
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), other.parameters(), strict=True))
    assert held.grad_fn is not None


@pytest.mark.parametrize(
    ("std", "kept"), [([0.1, 0.02, 0.03], [0, 2]), ([0.02, 0.019, 0.0], [0]), ([0.0, 0.01, 0.01], [1])]
)
def test_the_last_unit_is_kept(std: list[float], kept: list[int]) -> None:
    keep = units_to_keep(torch.tensor(std, dtype=torch.float64), 0.02)
    assert keep.nonzero().flatten().tolist() == kept
