"""What a fit changes in the process that it runs in, and puts back: generators, accelerate's state, messages, Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from accelerate.state import AcceleratorState, PartialState

from fairtune.classifier.errors import SettingsError
from fairtune.classifier.settings import WHERE
from fairtune.core.errors import Stopped
from fairtune.core.seeding import random_state, restore_random_state
from fairtune.models.transformers_files import quiet_transformers
from fairtune.study.problems import Problem

_one_at_a_time = threading.Lock()
"""Generators belong to the whole process: fits in several threads take turns, or none would be what its seed says."""


@contextmanager
def borrowed_process(device: str) -> Iterator[None]:
    """The process as the caller had it, once this is over.

    Args:
        device: on which to work; the one among several GPUs.
    """
    with _one_at_a_time, quiet_transformers():
        random = random_state()
        shared: list[tuple[Any, dict[str, Any]]] = [
            (state._shared_state, dict(state._shared_state)) for state in (PartialState, AcceleratorState)
        ]
        exact, warn_only = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        benchmark = torch.backends.cudnn.benchmark
        try:
            with torch.cuda.device(device) if device.startswith("cuda:") else nullcontext():
                yield
        finally:
            restore_random_state(random)
            for state, before in shared:
                state.clear()
                state.update(before)
            torch.use_deterministic_algorithms(exact, warn_only=warn_only)
            torch.backends.cudnn.benchmark = benchmark


def find_device(wanted: str) -> str:
    """The device to use, `auto` resolved: a GPU where there is one, else the CPU.

    Raises:
        SettingsError: there is no such device here.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(device_type for device_type, is_there in there.items() if is_there)
    device_type, _, number = wanted.partition(":")
    if not there[device_type] or (number and int(number) >= torch.cuda.device_count()):
        allowed = ", ".join(["auto", *(device_type for device_type, is_there in there.items() if is_there)])
        raise SettingsError([Problem(WHERE, "device", f"there is no '{wanted}' here; allowed: {allowed}.")])
    return wanted


class Interrupt:
    """The first Ctrl-C asks to stop at the next safe point; the second stops at once.

    Only the main thread receives it; elsewhere, and where Ctrl-C is ignored, nothing changes.
    """

    def __init__(self, quiet: bool) -> None:
        self.asked = False
        self._quiet = quiet

    def __enter__(self) -> Interrupt:
        self._before = signal.getsignal(signal.SIGINT)
        listens = threading.current_thread() is threading.main_thread()
        self._set = listens and self._before not in (signal.SIG_IGN, None)
        if self._set:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._set:
            signal.signal(signal.SIGINT, self._before)

    def check_stop(self) -> None:
        """Called at every safe point."""
        if self.asked:
            raise Stopped

    def _handle(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if not self._quiet:
            print("\nstopping after this step; Ctrl-C again stops at once", file=sys.stderr)
