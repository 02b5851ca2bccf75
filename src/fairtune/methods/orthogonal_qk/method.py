"""Query and key projections re-initialised and frozen."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtune.errors import ModelError, RunFailure
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk.config import OrthogonalQKConfig
from fairtune.models.attention import attention_layers

TOLERANCE = 1e-5
"""Largest allowed |W W^T - I| of a head in fp32."""


class OrthogonalQK(Method):
    config: OrthogonalQKConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        generator = torch.Generator().manual_seed(self.seed)
        for layer in attention_layers(model):
            for part, projection in (("query", layer.query), ("key", layer.key)):
                where = f"{layer.name}.{part}"
                self._initialise(projection, layer.heads, where, generator)
                if self.config.freeze:
                    projection.requires_grad_(False)
        return model

    def _initialise(self, projection: nn.Linear, heads: int, where: str, generator: torch.Generator) -> None:
        weight = projection.weight.detach()
        if self.config.init == "headwise":
            new = orthogonal_heads(weight, heads, where)
        elif self.config.init == "normal":
            new = torch.empty(weight.shape).normal_(0.0, self.config.std, generator=generator)
        else:
            return
        with torch.no_grad():
            projection.weight.copy_(new)


def orthogonal_heads(weight: Tensor, heads: int, where: str = "weight") -> Tensor:
    """Each head's rows made orthonormal within the space they span: the reduced QR of the head's transpose, sign-fixed.

    Args:
        weight: of shape [heads x head_dim, hidden].
        where: names the weight in messages.
    """
    rows, hidden = weight.shape
    head_dim = rows // heads
    if head_dim > hidden:
        raise ModelError(f"{where}: {head_dim} rows a head cannot be orthonormal in {hidden} dimensions.")
    per_head = weight.detach().double().cpu().reshape(heads, head_dim, hidden)
    q, r = torch.linalg.qr(per_head.transpose(1, 2), mode="reduced")
    signs = torch.where(torch.diagonal(r, dim1=1, dim2=2) < 0, -1.0, 1.0).to(q.dtype)
    new = (q * signs.unsqueeze(1)).transpose(1, 2)
    error = orthogonality_error(new.to(torch.float32))
    if not bool((error <= TOLERANCE).all()):
        raise RunFailure(f"{where}: heads are not orthonormal after QR (worst |W W^T - I| is {float(error.max()):.2g})")
    rebuilt: Tensor = new.reshape(rows, hidden).to(device=weight.device, dtype=weight.dtype)
    return rebuilt


def orthogonality_error(per_head: Tensor) -> Tensor:
    """max |W W^T - I| of each head, for weights of shape [heads, head_dim, hidden]."""
    gram = per_head @ per_head.transpose(1, 2)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    worst: Tensor = (gram - identity).abs().amax(dim=(1, 2))
    return worst
