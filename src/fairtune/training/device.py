"""Accelerate's part: the device and the arithmetic of a run."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from fairtune.core.errors import RunFailure


def make_accelerator(device: str, precision: str) -> Accelerator:
    """An accelerator for one run.

    Args:
        device: `cpu`, or the kind of accelerator that this process sees first.
        precision: a study's word; `auto` is bf16 where a GPU has it, else fp32.
    """
    on_cpu = device == "cpu"
    if precision == "auto":
        has_bf16 = device.startswith("cuda") and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
        precision = "bf16" if has_bf16 else "fp32"
    if precision == "fp16" and on_cpu:
        raise RunFailure("precision fp16 needs a GPU; use bf16 or fp32 on a CPU")
    mixed = "no" if precision == "fp32" else precision
    # Accelerate keeps device and precision for the whole process; a worker's next run may want others.
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(mixed_precision=mixed, cpu=on_cpu)
    if accelerator.device.type != device.partition(":")[0]:
        raise RunFailure(
            f"there is no device {device} here; torch would take {accelerator.device.type}. Set execution.devices."
        )
    if device.startswith("cuda"):
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)
    return accelerator
