"""NVML of a machine that is not there: cards with processes, memory, clocks and faults, asked as `pynvml` is."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fairtune.core import process_family

GB = 1 << 30
UUIDS = (
    "GPU-1a2b0000-0000-0000-0000-000000000000",
    "GPU-1a2c1111-1111-1111-1111-111111111111",
    "GPU-77de2222-2222-2222-2222-222222222222",
    "GPU-90ff3333-3333-3333-3333-333333333333",
)


@dataclass
class Part:
    """A part that MIG made."""

    uuid: str
    gi: int
    ci: int = 0
    processes: dict[int, int] = field(default_factory=dict)
    used: int = 0


@dataclass
class Card:
    """A card.

    Args:
        processes: bytes of each process, by its number.
        used: bytes besides those of processes.
        fault: the NVML error that every question about it gets.
        ecc: errors that were not corrected.
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
    ecc: int = 0
    fault: int | None = None
    parts: list[Part] | None = None


class FakeNvml(ModuleType):
    """`pynvml` as far as it is asked.

    Attributes:
        cards: in the order in which NVML has them.
        deaf: questions that nobody answers.
        open: how often it was begun and not ended.
    """

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_RESET_REQUIRED = 16
    NVML_ERROR_GPU_NOT_FOUND = 28
    NVML_ERROR_INVALID_ARGUMENT = 2

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

    def _ask_nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"550.1"

    def _ask_nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def _ask_nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        self._require_well(self.cards[index])
        return self.cards[index]

    def _ask_nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card | Part:  # noqa: N802
        for card in self.cards:
            for found in (card, *(card.parts or ())):
                if found.uuid == uuid:
                    self._require_well(card)
                    return found
        raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)

    def _ask_nvmlDeviceGetUUID(self, device: Card | Part) -> str:  # noqa: N802
        return device.uuid

    def _ask_nvmlDeviceGetName(self, device: Card | Part) -> str | bytes:  # noqa: N802
        return f"{self.cards[0].name} MIG 1g.5gb" if isinstance(device, Part) else device.name.encode()

    def _ask_nvmlDeviceGetPciInfo(self, card: Card) -> Any:  # noqa: N802
        return SimpleNamespace(domain=0, bus=card.bus, device=0)

    def _ask_nvmlDeviceGetTemperature(self, card: Card | Part, sensor: int) -> int:  # noqa: N802
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self._whole(card).temperature

    def _ask_nvmlDeviceGetUtilizationRates(self, card: Card | Part) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._whole(card).utilisation, memory=1)

    def _ask_nvmlDeviceGetClockInfo(self, card: Card | Part, clock: int) -> int:  # noqa: N802
        assert clock == self.NVML_CLOCK_SM
        return self._whole(card).clock

    def _ask_nvmlDeviceGetCurrentClocksEventReasons(self, card: Card | Part) -> int:  # noqa: N802
        return self._whole(card).reasons

    def _ask_nvmlDeviceGetTotalEccErrors(self, card: Card | Part, kind: int, since: int) -> int:  # noqa: N802
        assert (kind, since) == (self.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, self.NVML_VOLATILE_ECC)
        return self._whole(card).ecc

    def _ask_nvmlDeviceGetMemoryInfo(self, device: Card | Part) -> Any:  # noqa: N802
        total = 5 * GB if isinstance(device, Part) else device.memory
        used = device.used + sum(device.processes.values())
        return SimpleNamespace(total=total, used=used, free=total - used)

    def _ask_nvmlDeviceGetComputeRunningProcesses(self, device: Card | Part) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in device.processes.items()]

    def _ask_nvmlDeviceGetMigMode(self, card: Card) -> list[int]:  # noqa: N802
        return [int(card.parts is not None)] * 2

    def _ask_nvmlDeviceGetMaxMigDeviceCount(self, card: Card) -> int:  # noqa: N802, ARG002
        return 7

    def _ask_nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, index: int) -> Part:  # noqa: N802
        if index >= len(card.parts or ()):
            raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)
        assert card.parts is not None
        return card.parts[index]

    def _ask_nvmlDeviceGetGpuInstanceId(self, part: Part) -> int:  # noqa: N802
        return part.gi

    def _ask_nvmlDeviceGetComputeInstanceId(self, part: Part) -> int:  # noqa: N802
        return part.ci

    def _whole(self, card: Card | Part) -> Card:
        """A part is not asked for what only its card has."""
        if isinstance(card, Part):
            raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        return card


def use_fake(monkeypatch: pytest.MonkeyPatch, cards: int = 4) -> FakeNvml:
    """Have this process find cards, with process numbers that are those of the machine."""
    fake = FakeNvml(cards)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(process_family, "sees_all_processes", lambda: True)
    monkeypatch.setattr("fairtune.core.gpus.sees_all_processes", lambda: True)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", process_family.HEAD):
        monkeypatch.delenv(name, raising=False)
    return fake
