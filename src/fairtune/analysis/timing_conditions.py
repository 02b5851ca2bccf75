"""Under what conditions something was timed: load, the work of others, clocks and temperature, in figures and in words."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BUSY = 0.3
"""Cores that others use, from which on a machine is shared."""


@dataclass(frozen=True)
class Conditions:
    """What the samples of timing sessions show.

    Args:
        share: of the time in which our process was to run that it had the processor; None where several threads or a GPU ran.
        others: cores that other processes used, the median and the most.
        processes: the most processes that were busy besides ours.
        mhz, celsius, load: lowest and highest; None where the system does not tell.
    """

    samples: int
    share: float | None
    others: tuple[float, float]
    stolen: float
    processes: int
    load: tuple[float, float] | None
    mhz: tuple[float, float] | None
    celsius: tuple[float, float] | None
    gpu_celsius: tuple[float, float] | None
    gpu_others: int

    @property
    def shared(self) -> bool:
        return self.others[0] >= BUSY or self.gpu_others > 0

    def lines(self) -> list[str]:
        """The conditions in words."""
        if not self.samples:
            return ["Nothing was sampled of the machine's other work."]
        found = [
            f"Other processes used {self.others[0]:.1f} cores in the median ({self.others[1]:.1f} at the most"
            + (f"; up to {self.processes} of them busy)" if self.processes else ")")
        ]
        if self.share is not None:
            found.append(f"the timed process had the processor for {100 * self.share:.0f} % of the time")
        if self.stolen >= 0.01:
            found.append(f"the host took away {self.stolen:.2f} cores")
        for name, ends, unit in (("load average", self.load, ""), ("clock", self.mhz, " MHz"), ("temperature", self.celsius, " °C"),
                                 ("GPU temperature", self.gpu_celsius, " °C")):  # fmt: skip
            if ends is not None:
                low, high = (f"{end:.1f}" if name == "load average" else f"{end:.0f}" for end in ends)
                found.append(f"{name} {low}{unit}" if low == high else f"{name} {low} to {high}{unit}")
        if self.gpu_others:
            found.append(f"{self.gpu_others} other processes on the GPUs")
        return ["; ".join(found) + "."]


def describe_conditions(sessions: Sequence[Mapping[str, Any]]) -> Conditions:
    samples = [sample for session in sessions for sample in session.get("samples") or ()]
    gpus = [gpu for sample in samples for gpu in sample.get("gpus") or ()]
    turns = [
        turn
        for session in sessions
        if session["device"] == "cpu" and session["threads"] == 1
        for one in session["rounds"]
        for turns in one["turns"].values()
        for turn in turns
    ]
    others = [float(sample["foreign_cores"]) for sample in samples]
    wall = sum(turn["wall"] for turn in turns)
    return Conditions(
        samples=len(samples),
        share=min(1.0, sum(turn["processor"] for turn in turns) / wall) if wall else None,
        others=(statistics.median(others), max(others)) if others else (0.0, 0.0),
        stolen=statistics.fmean(float(sample["stolen_cores"]) for sample in samples) if samples else 0.0,
        processes=max((int(sample.get("foreign_processes") or 0) for sample in samples), default=0),
        load=_ends(sample.get("load") for sample in samples),
        mhz=_ends(sample.get("mhz") for sample in samples),
        celsius=_ends(sample.get("celsius") for sample in samples),
        gpu_celsius=_ends(gpu.get("temperature") for gpu in gpus),
        gpu_others=max((int(gpu.get("other_processes") or 0) for gpu in gpus), default=0),
    )


def _ends(values: Iterable[float | None]) -> tuple[float, float] | None:
    known = [float(value) for value in values if value is not None]
    return (min(known), max(known)) if known else None
