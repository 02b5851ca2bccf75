"""A run's card says for which tokens the last layer is computed, and counts what is then left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fairtune.execution.start import build_start
from fairtune.models.sources import find_model


def card(model: Path, methods: list[Any]) -> dict[str, Any]:
    ids = torch.arange(5, 21).reshape(2, 8)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor([0, 1])}
    settings = {"seed": 1, "methods": methods, "train": {}}
    return build_start(settings, find_model(str(model)), ("neg", "pos"), batch).describe()


@pytest.mark.parametrize("methods", [[], [{"orthogonal_qk": {"init": "headwise"}}]], ids=["baseline", "frozen"])
def test_the_card_names_the_token_that_is_read(tiny_model: Path, methods: list[Any]) -> None:
    assert card(tiny_model, methods)["last_layer"] == {"computed_for": "first token"}


def test_the_bound_of_frozen_queries_and_keys_is_that_of_the_narrowed_model(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last layer's queries have a gradient from one token only, so there is less to save, of less work."""
    frozen = [{"orthogonal_qk": {"init": "headwise"}}]
    narrowed = card(tiny_model, frozen)["costs"]
    monkeypatch.setattr("fairtune.execution.start.narrow_last_layer", lambda _: _Wide())
    whole = card(tiny_model, frozen)["costs"]
    for when in ("flops_per_token", "checkpoint_flops_per_token"):
        assert all(narrowed[when][way] < whole[when][way] for way in ("forward", "backward"))
    saved = [
        costs["checkpoint_flops_per_token"]["backward"] - costs["flops_per_token"]["backward"]
        for costs in (narrowed, whole)
    ]
    assert 0 < saved[0] < saved[1]
    assert narrowed["speedup_bound"] > 1


class _Wide:
    def as_json(self) -> dict[str, Any]:
        return {}
