"""Whether it was the GPU that failed, when a run did: a run on a broken GPU is not a failed run, but one that goes on elsewhere."""

from __future__ import annotations

from fairtune.core.gpus import count_ecc_errors, find_fault, nvml_held
from fairtune.core.visible_gpus import visible_gpus

BROKEN = (
    "uncorrectable ECC error",
    "uncorrectable NVLink error",
    "hardware stack error",
    "GPU is lost",
    "device lost",
    "fallen off the bus",
)
"""What CUDA says of hardware that has failed, whatever a program did."""
ABOUT_GPUS = ("CUDA", "CUBLAS", "CUDNN", "CUFFT", "NCCL")
"""In what is said of a GPU; most of it is the fault of a program, unless NVML says otherwise."""


class DeviceHealth:
    """Knows how the GPUs of this process were when a run began.

    Args:
        device: of the run; its GPUs are all that this process sees.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device.startswith("cuda")
        with nvml_held():
            gpus = (visible_gpus() or []) if self._on_gpu else []
            self._errors = {gpu: count_ecc_errors(gpu) for gpu in gpus}

    def fault(self, error: BaseException) -> str | None:
        """Why the GPU has failed, in words; None where it is well, as far as anybody can tell."""
        text = str(error)
        if not self._on_gpu or not isinstance(error, RuntimeError) or not any(w in text.upper() for w in ABOUT_GPUS):
            return None
        with nvml_held():
            for gpu, errors in self._errors.items():
                if (found := find_fault(gpu, errors)) is not None:
                    return found
        said = next((words for words in BROKEN if words.lower() in text.lower()), None)
        return None if said is None else f'CUDA says "{said}"'
