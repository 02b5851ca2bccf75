"""NVML of a machine that is not there: cards with processes, memory and clocks, asked as `pynvml` is."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

GB = 1 << 30
UUIDS = (
    "GPU-1a2b0000-0000-0000-0000-000000000000",
    "GPU-1a2c1111-1111-1111-1111-111111111111",
    "GPU-77de2222-2222-2222-2222-222222222222",
    "GPU-90ff3333-3333-3333-3333-333333333333",
)


@dataclass
class Card:
    """A card.

    Args:
        processes: bytes of each process, by its number.
        used: bytes besides those of processes.
        fault: the NVML error that every question about it gets.
    """

    uuid: str
    bus: int
    name: str = "NVIDIA A100-SXM4-40GB"
    memory: int = 40 * GB
    used: int = GB
    processes: dict[int, int] = field(default_factory=dict)
    utilisation: int = 0
    temperature: int = 40
    clock: int = 1410
    reasons: int = 0
    fault: int | None = None


class FakeNvml(ModuleType):
    """`pynvml` as far as it is asked.

    Attributes:
        cards: in the order in which NVML has them.
        deaf: questions that nobody answers.
        open: how often it was begun and not ended.
    """

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_GPU_IS_LOST = 15

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"NVML error {value}")
            self.value = value

    def __init__(self, cards: int = 4) -> None:
        super().__init__("pynvml")
        self.cards = [Card(uuid, bus=0x10 * (number + 1)) for number, uuid in enumerate(UUIDS[:cards])]
        self.deaf: set[str] = set()
        self.open = 0
        for name in [name for name in dir(type(self)) if name.startswith("_ask_")]:
            setattr(self, name.removeprefix("_ask_"), self._answering(name.removeprefix("_ask_"), getattr(self, name)))

    def _answering(self, question: str, answer: Any) -> Any:
        def ask(*arguments: Any) -> Any:
            if question in self.deaf:
                raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
            if question != "nvmlInit":
                assert self.open > 0, f"{question} of an NVML that is not loaded"
            if arguments and isinstance(arguments[0], Card):
                self._require_well(arguments[0])
            return answer(*arguments)

        return ask

    def _require_well(self, card: Card) -> None:
        if card.fault is not None:
            raise self.NVMLError(card.fault)

    def _ask_nvmlInit(self) -> None:  # noqa: N802
        self.open += 1

    def _ask_nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def _ask_nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "550.1"

    def _ask_nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def _ask_nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        self._require_well(self.cards[index])
        return self.cards[index]

    def _ask_nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:  # noqa: N802
        for card in self.cards:
            if card.uuid == uuid:
                self._require_well(card)
                return card
        raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)

    def _ask_nvmlDeviceGetUUID(self, device: Card) -> str:  # noqa: N802
        return device.uuid

    def _ask_nvmlDeviceGetName(self, device: Card) -> str:  # noqa: N802
        return device.name

    def _ask_nvmlDeviceGetPciInfo(self, card: Card) -> Any:  # noqa: N802
        return SimpleNamespace(domain=0, bus=card.bus, device=0)

    def _ask_nvmlDeviceGetTemperature(self, card: Card, sensor: int) -> int:  # noqa: N802
        assert sensor == self.NVML_TEMPERATURE_GPU
        return card.temperature

    def _ask_nvmlDeviceGetUtilizationRates(self, card: Card) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=card.utilisation, memory=1)

    def _ask_nvmlDeviceGetClockInfo(self, card: Card, clock: int) -> int:  # noqa: N802
        assert clock == self.NVML_CLOCK_SM
        return card.clock

    def _ask_nvmlDeviceGetCurrentClocksEventReasons(self, card: Card) -> int:  # noqa: N802
        return card.reasons

    def _ask_nvmlDeviceGetMemoryInfo(self, device: Card) -> Any:  # noqa: N802
        total = device.memory
        used = device.used + sum(device.processes.values())
        return SimpleNamespace(total=total, used=used, free=total - used)

    def _ask_nvmlDeviceGetComputeRunningProcesses(self, device: Card) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in device.processes.items()]


def use_fake(monkeypatch: pytest.MonkeyPatch, cards: int = 4) -> FakeNvml:
    """Have this process find cards, with process numbers that are those of the machine."""
    fake = FakeNvml(cards)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr("fairtune.core.machine.sees_all_processes", lambda: True)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return fake
