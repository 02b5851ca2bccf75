"""A language model in two halves, hidden states and a linear head, found by trial: so that its loss need not hold all logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.models.model_parts import evaluating


@dataclass(frozen=True)
class LanguageHead:
    """A causal language model in its two halves: what makes the last hidden states, and the linear layer on them.

    Both are looked up at each use, as a method may replace them.
    """

    model: Any

    def hidden(self, **inputs: Tensor) -> Tensor:
        """The last hidden states, [rows, length, width]; the caller sees to autocast."""
        states: Tensor = self.model.base_model(**inputs, use_cache=False).last_hidden_state
        return states

    @property
    def weight(self) -> Tensor:
        weight: Tensor = self.model.get_output_embeddings().weight
        return weight

    @property
    def bias(self) -> Tensor | None:
        bias: Tensor | None = self.model.get_output_embeddings().bias
        return bias


def language_head(model: nn.Module, batch: Mapping[str, Tensor]) -> LanguageHead | None:
    """The halves of a causal language model, if the loss from them is the model's own; else None.

    Found by trial on a small part of `batch`, not by name: the head is made to answer with known logits, and these must come
    out of the model as they are and give its loss. Models that scale or cap their logits, or add to the loss, have no halves.

    Args:
        model: of transformers, with or without adapters of PEFT.
    """
    if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
        return None
    inner: Any = model.get_base_model() if hasattr(model, "get_base_model") else model  # type: ignore[operator]
    head = inner.get_output_embeddings() if hasattr(inner, "get_output_embeddings") else None
    if head is None or inner.base_model is inner or type(head).forward is not nn.Linear.forward:
        return None
    if any(module._forward_hooks or module._forward_pre_hooks for module in (model, inner, head)):
        return None
    found = LanguageHead(inner)
    ids = batch["input_ids"][:2, :8]
    small = {name: part[:2, :8] for name, part in batch.items() if part.shape == batch["input_ids"].shape}
    with evaluating(model), torch.no_grad():
        return found if _is_all_of(model, found, head, small | {"labels": ids}) else None


def _is_all_of(model: nn.Module, found: LanguageHead, head: nn.Linear, batch: dict[str, Tensor]) -> bool:
    """Whether the hidden states, the linear layer and a plain mean loss are all that the model does."""
    labels, device = batch["labels"], batch["labels"].device.type
    known = torch.arange(labels.numel() * len(head.weight), device=labels.device) * 7 % 17 - 8.0
    known = known.view(*labels.shape, -1)  # whole numbers, exact in 16 bits too
    seen: dict[str, Any] = {}

    def keep_hidden(_: nn.Module, __: Any, output: Any) -> None:
        seen["hidden"] = output[0]

    def answer(_: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
        seen["input"] = arguments[0]
        seen["autocast"] = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        return known.to(output.dtype) if output.shape == known.shape else output

    hooks = found.model.base_model.register_forward_hook(keep_hidden), head.register_forward_hook(answer)
    try:
        outputs: Any = model(**batch)
    finally:
        for hook in hooks:
            hook.remove()
    if not {"hidden", "input"} <= seen.keys() or not torch.equal(seen["hidden"], seen["input"]):
        return False
    expected = nn.functional.cross_entropy(known[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    if not torch.equal(outputs.logits.float(), known) or not torch.allclose(outputs.loss.float(), expected, rtol=1e-5):
        return False
    enabled, dtype = seen["autocast"]
    with torch.autocast(device, dtype=dtype, enabled=enabled):
        alone = found.hidden(**{name: part for name, part in batch.items() if name != "labels"})
    return alone.shape == seen["hidden"].shape and torch.allclose(alone, seen["hidden"], rtol=1e-3, atol=1e-4)
