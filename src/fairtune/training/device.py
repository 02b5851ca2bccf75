"""The device and the arithmetic of a run."""

from __future__ import annotations

import ctypes

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from fairtune.core.errors import ModelError, RunFailure
from fairtune.models.model_parts import outermost_networks, use_kernel
from fairtune.settings.sections import Train

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of `mallopt`'s settings, in GNU's C library."""
LARGE, MOST = 1 << 30, (1 << 31) - 1


def make_accelerator(device: str, precision: str, deterministic: bool = True) -> Accelerator:
    """An accelerator for one run.

    Args:
        device: `cpu`, or the kind of accelerator that this process sees first.
        precision: a study's word; `auto` is bf16 where a GPU has it, else fp32.
        deterministic: whether a GPU is kept to kernels that give the same bits every time; a CPU always is.
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
    if on_cpu:
        keep_freed_memory()
    if device.startswith("cuda"):
        torch.backends.cudnn.benchmark = not deterministic
        torch.use_deterministic_algorithms(deterministic, warn_only=True)
    return accelerator


def apply_arithmetic(model: nn.Module, train: Train, device: torch.device) -> None:
    """Switch on the attention kernel, gradient checkpointing and compiled layers that a run asks for.

    Raises:
        ModelError: transformers does not offer it for this model.
    """
    use_kernel(model, train.attention_kernel, device)
    for network in outermost_networks(model) if train.gradient_checkpointing else ():
        if not getattr(network, "supports_gradient_checkpointing", False):
            raise ModelError(
                f"gradient_checkpointing: transformers does not offer it for {type(network).__name__}; leave it out, or use a "
                "smaller batch_size with a larger accumulate."
            )
        # The kind that works with frozen inputs, and with hooks on what is saved.
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        network.disable_input_require_grads()  # which only the other kind needs, and frozen embeddings would get gradients
    if train.compile:
        layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
        if not layers:
            name = type(model).__name__
            raise ModelError(f"compile: {name} has no layers that transformers marks as such; leave `compile` out.")
        for layer in layers:  # each by itself: layers of one shape share their kernels, and heads stay open to methods
            layer.compile(dynamic=True)


def keep_freed_memory() -> None:
    """Let this process use the memory of freed tensors again, where it runs on GNU's C library; elsewhere nothing happens.

    Every step frees its gradients and takes as much again. Large pieces go back to the kernel, which then hands out and clears
    20,000 pages a step: an eighth of a small BERT's step. The peak of the process stays the same.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(MMAP_THRESHOLD, LARGE)
    set_option(TRIM_THRESHOLD, MOST)
