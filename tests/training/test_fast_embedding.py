"""Embeddings that keep their gradient's memory: the same gradients and norms, whoever else writes into them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairtune.training.optimizer import gradient_norm, step_clipped
from fairtune.training.table_gradients import (
    LARGE,
    ROWS,
    FastEmbedding,
    keep_gradient_memory,
    nonzero_gradients,
    use_fast_embedding,
)

WIDTH = 16


class Reader(nn.Module):
    """A table, and a head that reads the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(LARGE // WIDTH, WIDTH, padding_idx=0)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        answer: Tensor = self.head(self.table(tokens).mean(1))
        return answer


def pair() -> tuple[Reader, Reader]:
    torch.manual_seed(0)
    plain = Reader()
    fast = copy.deepcopy(plain)
    use_fast_embedding(fast)
    assert type(fast.table) is FastEmbedding
    return plain, fast


def tokens(seed: int) -> Tensor:
    """With repeats and padding."""
    found = torch.randint(1, 40, (4, 6), generator=torch.Generator().manual_seed(seed)) * 7 * seed
    found[0, 4:] = 0
    return found


def once(model: Reader, seed: int, extra: str) -> None:
    loss = model(tokens(seed)).pow(2).sum()
    if extra == "penalty on every weight":
        loss = loss + 0.1 * model.table.weight.pow(2).sum()
    if extra == "two batches in one pass":
        loss = loss + model(tokens(seed + 9)).pow(2).sum()
    loss.backward()
    if extra == "two backward passes":
        model(tokens(seed + 9)).pow(2).sum().backward()
    if extra == "scaled":
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(0.5)


@pytest.mark.parametrize(
    "extra", ["nothing", "penalty on every weight", "two batches in one pass", "two backward passes", "scaled"]
)
@pytest.mark.parametrize("clip", [None, 0.01])
def test_training_is_the_same_to_rounding(extra: str, clip: float | None) -> None:
    models = pair()
    optimizers = [torch.optim.AdamW(model.parameters(), lr=0.01, fused=True) for model in models]
    for seed in range(1, 5):
        extra_now = extra if seed == 2 else "nothing"  # what was kept before it, and what is kept after it
        norms = []
        for model, optimizer in zip(models, optimizers, strict=True):
            once(model, seed, extra_now)
            parameters = list(model.parameters())
            norms.append(gradient_norm(parameters))
            step_clipped(optimizer, parameters, norms[-1], clip)
            keep_gradient_memory(parameters)
            optimizer.zero_grad(set_to_none=True)
        torch.testing.assert_close(norms[1], norms[0])
        for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
            torch.testing.assert_close(other, one, msg=f"step {seed}")


def test_memory_is_kept_from_step_to_step_and_clean() -> None:
    _, fast = pair()
    places = []
    for seed in range(1, 4):
        once(fast, seed, "nothing")
        assert fast.table.weight.grad is not None
        places.append(fast.table.weight.grad.data_ptr())
        assert nonzero_gradients([fast.table.weight])[0].shape[0] < 30
        keep_gradient_memory(fast.parameters())
        known: Any = getattr(fast.table.weight, ROWS)
        assert known.spare is not None
        assert not known.spare.any()
        assert fast.table.weight.grad is None
    assert len(set(places)) == 1


def test_a_gradient_that_somebody_holds_is_left_to_them() -> None:
    _, fast = pair()
    once(fast, 1, "nothing")
    held = fast.table.weight.grad
    assert held is not None
    before = held.clone()
    assert before.any()
    keep_gradient_memory(fast.parameters())
    fast.zero_grad(set_to_none=True)
    once(fast, 2, "nothing")
    assert torch.equal(held, before)


def test_tables_that_are_tied_small_or_frozen_are_left_alone() -> None:
    tied, frozen = Reader(), Reader()
    tied.head = nn.Linear(WIDTH, LARGE // WIDTH, bias=False)
    tied.head.weight = tied.table.weight
    frozen.table.requires_grad_(False)
    for model in (tied, frozen, nn.Sequential(nn.Embedding(10, 4))):
        use_fast_embedding(model)
        assert not any(isinstance(module, FastEmbedding) for module in model.modules())


def test_the_state_dict_and_copies_are_as_before() -> None:
    plain, fast = pair()
    once(fast, 1, "nothing")
    keep_gradient_memory(fast.parameters())
    assert fast.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(copy.deepcopy(fast)(tokens(1)), plain(tokens(1)))


def test_writing_unseen_is_noticed_where_somebody_may() -> None:
    _, fast = pair()
    use_fast_embedding(fast, wary=True)
    known = getattr(fast.table.weight, ROWS)
    known.wary = True
    fast(tokens(1)).pow(2).sum().backward()
    assert len(nonzero_gradients([fast.table.weight])[0]) < 100
    assert fast.table.weight.grad is not None
    fast.table.weight.grad.data.add_(1.0)
    assert len(nonzero_gradients([fast.table.weight])[0]) == len(fast.table.weight)


def test_a_penalty_on_the_gradient_can_be_differentiated() -> None:
    plain, fast = pair()
    found = []
    for model in (plain, fast):
        (gradient,) = torch.autograd.grad(model(tokens(1)).pow(2).sum(), [model.table.weight], create_graph=True)
        gradient.pow(2).sum().backward()
        found.append(model.head.weight.grad)
    torch.testing.assert_close(*found)


def test_a_gradient_that_somebody_put_in_its_place_is_theirs() -> None:
    """Its memory may be that of the one before, which is gone: only what is held can be told from what is not."""
    _, fast = pair()
    fast(tokens(1)).pow(2).sum().backward()
    (found,) = torch.autograd.grad(fast(tokens(2)).pow(2).sum(), [fast.table.weight])
    fast.table.weight.grad = None
    del found
    fast.table.weight.grad = torch.ones_like(fast.table.weight)
    (all_rows,) = nonzero_gradients([fast.table.weight])
    assert len(all_rows) == len(fast.table.weight)
    keep_gradient_memory([fast.table.weight])
    assert fast.table.weight.grad is not None, "nothing is kept of it"
