"""Orthonormal rows: the arithmetic of OELM, for many heads at once."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtune.core.errors import ModelError, RunFailure
from fairtune.models.attention_geometry import orthogonality_error

TOLERANCE = 1e-5
"""Largest allowed |W W^T - I| of a head in fp32."""


def orthonormal_rows(heads: Tensor, where: str = "weight") -> Tensor:
    """The rows of each head made orthonormal within the space they span: reduced QR of the head's transpose, sign-fixed.

    Args:
        heads: of shape [heads, head_dim, hidden].
        where: names the weight in messages.
    """
    rows, hidden = heads.shape[-2:]
    if rows > hidden:
        raise ModelError(
            f"{where}: {rows} rows cannot be orthonormal in {hidden} dimensions; its head_dim (or for a global init, all of "
            f"its heads together) exceeds the hidden size. Use init: normal or keep, or headwise instead of global."
        )
    q, r = torch.linalg.qr(heads.detach().double().cpu().transpose(-2, -1), mode="reduced")
    signs = torch.where(torch.diagonal(r, dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    new: Tensor = (q * signs.unsqueeze(-2)).transpose(-2, -1)
    error = orthogonality_error(new.to(torch.float32))
    if not bool((error <= TOLERANCE).all()):
        raise RunFailure(f"{where}: heads are not orthonormal after QR (worst |W W^T - I| is {float(error.max()):.2g})")
    return new


def semi_orthogonal(weight: Tensor, where: str = "weight") -> Tensor:
    """A matrix with orthonormal rows, or orthonormal columns if it is taller than wide."""
    tall = weight.shape[0] > weight.shape[1]
    new = orthonormal_rows((weight.t() if tall else weight).unsqueeze(0), where)[0]
    return new.t() if tall else new
