"""The geometry of query and key projections and of attention logits, head by head, and how it changed from the checkpoint's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.models.attention import AttentionLayer, Projection, attention_layers
from fairtune.models.flops import Flops, count_flops
from fairtune.models.model_parts import Batch, measuring

Spread = Mapping[str, tuple[float, ...]]
"""By layer as transformers reports it (`attentions.0`), for each head: the standard deviation of a query's logits over the keys it
may see, averaged over queries."""


@dataclass(frozen=True)
class PassFacts:
    """What was measured while a real batch went through a model; without a batch, nothing."""

    spread: Spread = field(default_factory=dict)
    flops: Flops | None = None


@dataclass(frozen=True)
class CheckpointFacts:
    """What is remembered of a model as the checkpoint gave it, before any method touched it.

    Args:
        weights: of Q and K, layer by layer; empty for an unknown architecture.
        problem: why the attention is not known.
    """

    weights: Sequence[Tensor]
    measured: PassFacts
    problem: str | None = None


def take_checkpoint_facts(model: nn.Module, batch: Batch | None = None) -> CheckpointFacts:
    """Take note of a model before methods change it; logits and matrix products are measured on a real batch with labels."""
    measured = measure_pass(model, batch)
    try:
        found = _queries_and_keys(model)
    except ModelError as error:
        return CheckpointFacts((), measured, str(error))
    return CheckpointFacts([projection.weight().cpu() for _, projection in found], measured)


def measure_pass(model: nn.Module, batch: Batch | None) -> PassFacts:
    if batch is None:
        return PassFacts()
    return PassFacts(logit_spread(model, batch), count_flops(model, batch))


def describe_attention(model: nn.Module, before: CheckpointFacts, measured: PassFacts) -> dict[str, Any]:
    """The attention part of the init card: every layer's and head's Q and K now, against the checkpoint's.

    Returns:
        `layers` (one entry per projection, with a list over heads for each figure), `logits` (spread now and before), and
        `summary` (over the changed projections, or all if none is); or `problem`, if the architecture is not known.
        `orthogonality_error` is max |W W^T - I|; `direction_error` the same for rows scaled to norm 1.
    """
    if before.problem:
        return {"problem": before.problem}
    found = zip(_queries_and_keys(model), before.weights, strict=True)
    entries = [_entry(layer, projection, old) for (layer, projection), old in found]
    then = before.measured.spread
    logits = [{"layer": layer, "spread": now, "checkpoint": then.get(layer)} for layer, now in measured.spread.items()]
    return {"layers": entries, "logits": logits, "summary": _summary(entries, logits)}


def logit_spread(model: nn.Module, batch: Batch) -> Spread:
    """The spread of the attention logits of every layer and head on a batch; empty for a model that does not report it.

    It is read from the attention probabilities: softmax keeps differences of logits, whatever the architecture adds to them.
    """
    with measuring(model), torch.no_grad():
        try:
            outputs = model(**batch, output_attentions=True)
        except (TypeError, ValueError):
            return {}
    found = {}
    for output in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for number, probabilities in enumerate(outputs.get(output) or ()):
            if isinstance(probabilities, Tensor) and probabilities.ndim == 4:
                found[f"{output}.{number}"] = _spread(probabilities, batch.get("attention_mask"))
    return found


def row_space_cosines(a: Tensor, b: Tensor) -> Tensor:
    """Mean cosine of the principal angles between the row spaces of two weights [heads, head_dim, hidden], for each head."""
    bases = [torch.linalg.qr(heads.double().transpose(1, 2), mode="reduced")[0] for heads in (a, b)]
    cosines: Tensor = torch.linalg.svdvals(bases[0].transpose(1, 2) @ bases[1]).clamp(max=1.0)
    return cosines.mean(dim=1)


def orthogonality_error(heads: Tensor) -> Tensor:
    """max |W W^T - I| of each head, for weights of shape [heads, head_dim, hidden]."""
    gram = heads @ heads.transpose(-2, -1)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    worst: Tensor = (gram - identity).abs().amax(dim=(-2, -1))
    return worst


def _queries_and_keys(model: nn.Module) -> list[tuple[AttentionLayer, Projection]]:
    return [(layer, projection) for layer in attention_layers(model) for projection in layer.of("qk")]


def _entry(layer: AttentionLayer, projection: Projection, old: Tensor) -> dict[str, Any]:
    new = projection.weight().cpu()
    heads, was = (w.double().reshape(projection.heads, -1, w.shape[1]) for w in (new, old))
    changed = not torch.equal(new, old.to(new.dtype))
    norms = heads.norm(dim=2)
    return {
        "layer": layer.name,
        "block": layer.block,
        "part": projection.part,
        "module": projection.name,
        "changed": changed,
        "frozen": not projection.trains,
        "orthogonality_error": orthogonality_error(heads).tolist(),
        "direction_error": orthogonality_error(torch.nn.functional.normalize(heads, dim=2)).tolist(),
        "row_norm": norms.mean(dim=1).tolist(),
        "row_norm_min": norms.amin(dim=1).tolist(),
        "row_norm_max": norms.amax(dim=1).tolist(),
        "checkpoint_row_norm": was.norm(dim=2).mean(dim=1).tolist(),
        "row_space_cosine": row_space_cosines(heads, was).tolist() if changed else [1.0] * projection.heads,
        "difference_norm": (heads - was).flatten(1).norm(dim=1).tolist(),
    }


def _summary(entries: list[dict[str, Any]], logits: list[dict[str, Any]]) -> dict[str, Any]:
    def every(field: str, rows: list[dict[str, Any]] = entries) -> list[float]:
        return [value for row in rows for value in row[field] or ()]

    changed = [entry for entry in entries if entry["changed"]]
    return {
        "projections": len(entries),
        "changed": len(changed),
        "frozen": sum(entry["frozen"] for entry in entries),
        "worst_orthogonality_error": max(every("orthogonality_error", changed or entries), default=None),
        "worst_direction_error": max(every("direction_error", changed or entries), default=None),
        "row_norm": _mean(every("row_norm")),
        "checkpoint_row_norm": _mean(every("checkpoint_row_norm")),
        "row_space_cosine": _mean(every("row_space_cosine")),
        "logit_spread": _mean(every("spread", logits)),
        "checkpoint_logit_spread": _mean(every("checkpoint", logits)),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _spread(probabilities: Tensor, mask: Tensor | None) -> tuple[float, ...]:
    """Per head; of queries that are not padding and see at least two keys."""
    probabilities = probabilities.double()
    seen = probabilities > 0
    logs = torch.where(seen, probabilities, 1.0).log()
    count = seen.sum(-1)
    mean = logs.sum(-1) / count.clamp(min=1)
    variance = (torch.where(seen, (logs - mean.unsqueeze(-1)) ** 2, 0.0)).sum(-1) / (count - 1).clamp(min=1)
    counted = count > 1
    if mask is not None and mask.shape == (probabilities.shape[0], probabilities.shape[2]):
        counted = counted & mask.bool()[:, None, :]
    total = torch.where(counted, variance.sqrt(), 0.0).sum(dim=(0, 2))
    return tuple((total / counted.sum(dim=(0, 2)).clamp(min=1)).tolist())
