"""What tests of adversarial training share: settings, a padded batch, and eyes on what a tiny BERT does with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.models.model_parts import token_embeddings

OUTPUT: list[dict[str, Any]] = [
    {"method": "fgm"}, {"method": "fgm", "clean": False}, {"method": "pgd"}, {"method": "pgd", "clean": False},
    {"method": "freelb"}, {"method": "freelb", "clean": True},
]  # fmt: skip
ALL = [*OUTPUT, *({**one, "target": "table"} for one in OUTPUT if one["method"] != "freelb")]


def padded(more: int = 0) -> dict[str, Tensor]:
    """Three texts of 6, 4 and 2 tokens, with this much more padding."""
    ids = torch.randint(5, 60, (3, 6), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(6)[None] < torch.tensor([6, 4, 2])[:, None]
    pad = (0, more)
    return {
        "input_ids": nn.functional.pad(ids * mask, pad), "attention_mask": nn.functional.pad(mask.long(), pad),
        "labels": torch.tensor([0, 1, 1]),
    }  # fmt: skip


@contextmanager
def recorded(model: nn.Module) -> Iterator[list[Tensor]]:
    """How far the token vectors are, in each pass, from what the table gives: what the model goes on with, by its LayerNorm."""
    seen: list[Tensor] = []
    embeddings: Any = token_embeddings(model)
    start = embeddings.weight.detach().clone()
    positions: Any = model.bert.embeddings  # type: ignore[union-attr]

    def look(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        length = given[0].shape[1]
        others = positions.position_embeddings.weight[:length] + positions.token_type_embeddings.weight[0]
        seen.append((given[0] - others - start[ids[0]]).detach())

    ids: list[Tensor] = []
    hooks = [
        embeddings.register_forward_pre_hook(lambda _, given: ids.__setitem__(slice(None), [given[0]])),
        positions.LayerNorm.register_forward_pre_hook(look),
    ]
    yield seen
    for hook in hooks:
        hook.remove()


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def by_hand(model: Any, batch: dict[str, Tensor], delta: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The loss, and its gradient by the token vectors, through `inputs_embeds`."""
    vectors = model.get_input_embeddings()(batch["input_ids"]).detach()
    vectors = (vectors if delta is None else vectors + delta).requires_grad_()
    rest = {name: value for name, value in batch.items() if name != "input_ids"}
    loss = model(inputs_embeds=vectors, **rest).loss
    (gradient,) = torch.autograd.grad(loss, vectors)
    return loss.detach(), gradient * batch["attention_mask"][..., None]


def lengths(delta: Tensor) -> Tensor:
    return delta.flatten(1).norm(dim=1)
