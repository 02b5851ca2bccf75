"""Under what conditions runs were trained, by samples of their devices: the work of others beside them, heat and slowed clocks.

Scores do not depend on any of it; times do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.core.numbers import plural

FULL, TAKEN = 0.9, 0.1
"""Shares of a machine's processor time: a CPU that is used so far is full, and others who take so much of it are in the way."""
SHARE = 0.1
"""Of a run's samples, from which on it is told of."""
USUAL = "power cap"
"""What slows a GPU whenever it works hard: no fault of anybody's."""


@dataclass(frozen=True)
class RunConditions:
    """What the samples of a run show.

    Args:
        samples: how many there are.
        shared: those in which others used its GPU, or took their part of a CPU that was full.
        others: the most processes of others on its GPUs; on a CPU the largest share of processor time that others took.
        slowed: those in which its GPU ran slower than it could, because of heat or its power supply.
        reasons: why, the most frequent first.
        celsius: the highest temperature of its GPUs.
    """

    run: str
    samples: int
    on_gpu: bool
    shared: int
    others: float
    slowed: int
    reasons: tuple[str, ...]
    celsius: float | None

    @property
    def is_shared(self) -> bool:
        return self.shared >= SHARE * self.samples > 0

    @property
    def is_slowed(self) -> bool:
        return self.slowed >= SHARE * self.samples > 0

    @property
    def sharing_text(self) -> str:
        if self.on_gpu:
            most = f"up to {self.others:.0f} other process{'es' if self.others > 1 else ''} on its GPU"
        else:
            most = f"others took up to {100 * self.others:.0f} % of a full processor"
        return f"{self.run}: {most}, in {_share(self.shared, self.samples)}"

    @property
    def slowing_text(self) -> str:
        heat = f", up to {self.celsius:.0f} °C" if self.celsius is not None else ""
        return f"{self.run}: {' and '.join(self.reasons)}{heat}, in {_share(self.slowed, self.samples)}"


def judge_samples(run: str, samples: Sequence[Mapping[str, Any]]) -> RunConditions | None:
    """What a run's samples show; None where there are none, as in runs of earlier versions and in very short ones."""
    if not samples:
        return None
    on_gpu = any(sample.get("gpus") for sample in samples)
    foreign = [_others(sample) for sample in samples]
    slowed = [_reasons(sample) for sample in samples]
    heats = [gpu["temperature"] for sample in samples for gpu in _gpus(sample) if "temperature" in gpu]
    return RunConditions(
        run=run,
        samples=len(samples),
        on_gpu=on_gpu,
        shared=sum(found > 0 for found in foreign),
        others=max(foreign),
        slowed=sum(bool(found) for found in slowed),
        reasons=tuple(reason for reason, _ in Counter(one for found in slowed for one in found).most_common()),
        celsius=max(heats, default=None),
    )


def list_texts(texts: Sequence[str], most: int = 3) -> str:
    """Some of many, in a sentence."""
    return "; ".join(texts[:most]) + (f"; and {len(texts) - most} more" if len(texts) > most else "")


def _others(sample: Mapping[str, Any]) -> float:
    """Foreign processes on the GPUs, or what others took of a full CPU; 0 where nobody was in the way."""
    if sample.get("gpus"):
        return float(max(gpu.get("other_processes", 0) for gpu in _gpus(sample)))
    busy, taken = sample.get("busy", 0.0), sample.get("others", 0.0)
    return taken if busy >= FULL and taken >= TAKEN else 0.0


def _reasons(sample: Mapping[str, Any]) -> set[str]:
    return {reason for gpu in _gpus(sample) for reason in gpu.get("slowed", ()) if reason != USUAL}


def _gpus(sample: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return sample.get("gpus") or ()


def _share(some: int, of: int) -> str:
    return f"{100 * some / of:.0f} % of {plural(of, 'sample')}"
