"""What a map refuses, before anything is changed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairtune.core.errors import DataError, ModelError


def checked_rows(x: Tensor, prototypes: Tensor) -> Tensor:
    """The examples in the map's dtype and on its device, outside any graph."""
    x = torch.as_tensor(x)
    features = prototypes.shape[1]
    if x.dim() != 2 or x.shape[1] != features:
        raise ModelError(f"map: examples of shape {list(x.shape)} do not fit; it takes [examples, {features}]")
    rows = x.detach().to(device=prototypes.device, dtype=prototypes.dtype)
    if not math.isfinite(float(rows.sum())):  # one number to look at; a sum of finite numbers may still overflow
        bad = (~torch.isfinite(rows)).any(1)
        if bool(bad.any()):
            raise DataError(
                f"map: {int(bad.sum())} of {len(rows)} examples hold NaN or infinite numbers (the first is example "
                f"{int(bad.nonzero()[0])}); the map was not changed. Look for a learning rate that is too high or a broken input"
            )
    return rows


def checked_classes(classes: Tensor, examples: int, known: int, device: torch.device) -> Tensor:
    """The classes of the examples as whole numbers on the map's device."""
    classes = torch.as_tensor(classes)
    if known == 0:
        raise ModelError(
            "map: it was made without classes, so its cells have no labels; make it with SOM(..., classes=n)"
        )
    if classes.shape != (examples,):
        raise ModelError(f"map: classes of shape {list(classes.shape)} do not fit {examples} examples; give one a row")
    if classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool:
        raise ModelError(f"map: classes are {classes.dtype}; give whole numbers from 0 to {known - 1}")
    classes = classes.detach().to(device=device, dtype=torch.int64)
    if examples:
        low, high = (int(end) for end in torch.stack(classes.aminmax()))
        if low < 0 or high >= known:
            raise DataError(
                f"map: class {low if low < 0 else high} is outside 0 to {known - 1}; examples without a label (-1) cannot be used"
            )
    return classes


def check_step(radius: int, rate: float) -> None:
    """Refuses a neighbourhood or a rate that would not move a cell towards an example."""
    if radius < 0 or radius != int(radius):
        raise ModelError(f"radius: {radius} is not a number of steps; give a whole number of at least 0")
    if not 0 <= rate <= 1:
        raise ModelError(f"rate: {rate} is outside 0 to 1; beyond 1 a cell would overshoot its example")
