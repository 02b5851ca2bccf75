"""How a run's device fares while the run is under way: a thread looks every few seconds and writes into the run's events.

On GPUs it is their use, heat, clocks, memory and the processes of others; on a CPU, what others take of it. A report judges by that
whether a run's times mean anything. Nothing that goes wrong here, such as a driver that falls over, concerns the run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtune.core.gpus import Gpu, describe_gpu, nvml_held
from fairtune.core.leases import require_held
from fairtune.core.processor_use import ProcessorUse
from fairtune.core.visible_gpus import visible_gpus
from fairtune.ledger.events import EventLog

EVERY_SECONDS = 5.0
STOP_SECONDS = 5.0
"""How long to wait for the thread at the end; a driver that hangs must not hold up a run."""
CONSTANT = ("name", "memory_bytes")
"""What environment.json says once and for all."""


class DeviceSamples:
    """Writes samples of a run's device into its events until it is left.

    Args:
        device: of the run; its GPUs are all that this process sees.
        folder: the run's, of which nothing is written once another process has it.
    """

    def __init__(self, log: EventLog, device: str, folder: Path) -> None:
        self._log, self._device, self._folder = log, device, folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_sampling, name="fairtune-device-samples", daemon=True)

    def __enter__(self) -> DeviceSamples:
        with contextlib.suppress(RuntimeError):  # the system has no thread left
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _keep_sampling(self) -> None:
        with contextlib.suppress(Exception), nvml_held():
            gpus = (visible_gpus() or []) if self._device.startswith("cuda") else []
            use = None if gpus else ProcessorUse()
            while not self._ended.wait(EVERY_SECONDS):
                with contextlib.suppress(Exception):  # whatever it is, the run goes on
                    found = _sample_gpus(gpus) if use is None else use.look()
                    require_held(self._folder)
                    self._log.write_sample(**found)


def _sample_gpus(gpus: Sequence[Gpu]) -> dict[str, Any]:
    found = [describe_gpu(gpu) for gpu in gpus]
    told = [{k: v for k, v in one.items() if k not in CONSTANT and v is not None and v != []} for one in found]
    return {"gpus": told}
