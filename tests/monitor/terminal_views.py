"""Views of studies made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairtune.monitor.study_view import ArmView, DeviceView, RunView, StudyView, VerdictView

PEEKING = VerdictView(
    opening="focal is better than baseline.",
    peeking="peeking: 3 of 5 seeds",
    n=3,
    planned=5,
    note="This is not counted as a look; it may change.",
)


def made_view(names: tuple[str, str] = ("oelm-freeze", "focal"), **changes: Any) -> StudyView:
    """A study under way: three arms, two runs under way, one that failed, two devices."""
    frozen, focal = names
    arms = (
        ArmView("baseline", 0, 4, 5, {"finished": 4, "waiting": 1}, 4, 0.842, 0.831, 0.853),
        ArmView(frozen, 1, 3, 5, {"finished": 3, "running": 1, "waiting": 1}, 3, 0.641, 0.62, 0.66, "baseline", 3,
                -0.201, -0.23, -0.172, "worse"),
        ArmView(focal, 2, 1, 5, {"finished": 1, "failed": 1, "running": 1, "waiting": 2}, against="baseline"),
    )  # fmt: skip
    runs = (
        RunView(frozen, 3, 10, "running", 120, 400, 0.9, 3.0, 0.412, 0.66, "validation", 3.21, 40.0, 87.0, "training",
                "cpu-0"),
        RunView(focal, 2, 8, "running", 0, 1400, 0.0, 3.0, phase="tokenising, 3,000 of 20,000", worker="cpu-1"),
        RunView(focal, 1, 5, "failed", reason="the loss is nan at step 3 of 1400"),
        RunView("baseline", 3, 9, "finished", 400, 400, 3.0, 3.0, 0.1, 0.85, "test", seconds=61.4),
        RunView("baseline", 4, 12, "waiting", steps=400),
    )  # fmt: skip
    devices = (
        DeviceView(
            "cpu-0", "cpu, AMD EPYC", f"{frozen}/seed-3", load=0.97, memory_used=3_000_000_000, memory=8 * 10**9
        ),
        DeviceView("cuda-1", "cuda:1, A100", f"{focal}/seed-2", False, 300.0, 0.2, 10**9, 8 * 10**10, 67.0, 2),
    )
    view = StudyView(
        "movie-reviews-demo", "running", "movie-reviews, minilm, accuracy on test", "accuracy", total=15, left=720.0,
        counts={"finished": 8, "running": 2, "failed": 1, "waiting": 4}, arms=arms, runs=runs, devices=devices,
        verdict=PEEKING, log=(("cpu-0", "tokenising texts"), (f"{focal}/seed-1", "the loss is nan")),
    )  # fmt: skip
    return replace(view, **changes)
