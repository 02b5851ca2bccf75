"""Views of studies made by hand, behind the real server: what a page is sent, without a ledger."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from fairtune.core.numbers import points
from fairtune.monitor.study_view import ArmCurve, ArmView, CurvesView, DeviceView, RunView, StudyView, VerdictView

STEPS, EVERY = 600, 12
HOSTILE = '<img src=x onerror="alert(1)">'
LONG = "ten-thousand-" * 770
NAMES = (
    HOSTILE,
    "../../etc/passwd",
    LONG,
    "تجربة-النموذج",
    "🧪-emoji-👩‍🔬",
    "</script><script>alert(2)</script>",
    "\u202eevil",
)


class MadeBuilder:
    """Stands in for `StudyBuilder`: shows what `views` holds, which a test may change."""

    def __init__(self, runs: Path, views: dict[str, tuple[StudyView, CurvesView]]) -> None:
        self.runs, self.views = runs, views
        self.live = SimpleNamespace(progress=self._progress, rows=lambda _: [])

    def tick(self) -> set[str]:
        return set(self.views)

    @property
    def studies(self) -> list[str]:
        return list(self.views)

    def view(self, study: str) -> StudyView:
        return self.views[study][0]

    def brief(self, study: str) -> StudyView:
        return replace(self.view(study), runs=(), log=())

    def curves(self, study: str) -> CurvesView:
        return self.views[study][1]

    def arms_with(self, *_: str) -> set[str]:
        return set()

    def metric(self, study: str) -> str | None:
        return self.view(study).metric

    def run_views(self, study: str, state: str, arm: str, start: int, most: int) -> tuple[int, list[RunView]]:
        del arm
        found = [run for run in self.view(study).runs if state in ("", run.state)]
        return len(found), found[start : start + most]

    def run_view(self, study: str, arm: str, seed: int) -> RunView | None:
        return next((run for run in self.view(study).runs if (run.arm, run.seed) == (arm, seed)), None)

    def _progress(self, study: str, arm: str, seed: int) -> Any:
        run = self.run_view(study, arm, seed)
        found = made_losses(Random(seed), STEPS if run is None or run.step is None else run.step, 0.2)
        return SimpleNamespace(
            losses=found, scores={}, warnings=run.warnings if run else (), failed=run.reason if run else None
        )


def made_losses(random: Random, until: int, floor: float) -> tuple[tuple[int, float], ...]:
    return tuple(
        (step, floor + 0.6 * math.exp(-step / 120) + random.gauss(0, 0.012)) for step in range(EVERY, until + 1, EVERY)
    )


def made_study(
    name: str = "movie-reviews", arms: tuple[str, ...] = ("baseline", "orthogonal-qk", "focal"), seeds: int = 5,
    done: float = 2.4, text: str = "",
) -> tuple[StudyView, CurvesView]:  # fmt: skip
    """A study that is so many seeds in, a part of a seed included.

    Args:
        text: what every text that a ledger can hold is, besides the names.
    """
    random = Random(7)
    whole, rest = int(done), done - int(done)
    views, runs, scores, losses = [], [], [], {}
    for place, arm in enumerate(arms):
        level = 0.86 + 0.012 * math.sin(1.7 * place) - (0.06 if place == 4 else 0)
        tests = [level + random.gauss(0, 0.006) for _ in range(seeds)]
        states = {seed: "finished" if seed < whole else "waiting" for seed in range(seeds)}
        if whole < seeds and rest:
            states[whole] = "running" if place < 2 else "failed" if place == 2 else "waiting"
        counted = [tests[seed] for seed in range(seeds) if states[seed] == "finished"]
        views.append(_arm(arm, place, arms[0], states, counted, random))
        floor = 0.18 + 0.03 * math.sin(place)
        step = {"finished": STEPS, "running": int(rest * STEPS), "failed": 204, "waiting": 0}
        shift = [
            Random(100 * place + seed).gauss(0, 1) for seed in range(seeds)
        ]  # of a seed's whole curve, so that bands show
        own = {
            seed: made_losses(random, step[state], floor + 0.015 * shift[seed])
            for seed, state in states.items()
            if step[state]
        }
        own_scores = {
            seed: tuple(
                (at, level + 0.008 * shift[seed] - 0.25 * math.exp(-at / 150) + random.gauss(0, 0.004))
                for at, _ in line[4::5]
            )
            for seed, line in own.items()
        }
        ended = [seed for seed, state in states.items() if state == "finished"]
        scores.append(_curve(arm, place, own_scores, ended))
        losses.setdefault(" of focal" if arm == "focal" else "", []).append(_curve(arm, place, own, ended))
        runs += [
            _run(arm, place, seed, state, step[state], tests[seed], own.get(seed, ()), text)
            for seed, state in states.items()
        ]
    order = ["running", "failed", "finished", "waiting"]
    runs.sort(key=lambda run: (order.index(run.state), run.seed))
    counts = Counter(run.state for run in runs)
    ended = not (counts["running"] or counts["waiting"])
    view = StudyView(
        name,
        "finished" if ended else "running",
        about=text or "sst2 with all-MiniLM-L6-v2, accuracy on the test half",
        metric="accuracy",
        counts=dict(counts),
        total=len(runs),
        left=None if ended else 60 * (seeds - done) * len(arms),
        arms=tuple(views),
        runs=tuple(run for state in order for run in [run for run in runs if run.state == state][:40]),
        devices=_devices(text),
        verdict=VerdictView(
            opening=text or _opening(views),
            peeking="" if ended else f"peeking: {whole} of {seeds} seeds",
            n=whole,
            planned=seeds,
            note=""
            if ended
            else "A look at it is not counted, and it may change: verdicts are taken when all runs have ended.",
        ),
        log=tuple((f"cpu-{place % 2}", text or f"evaluated at step {12 * place}") for place in range(14)),
    )
    return view, CurvesView(tuple((name, tuple(found)) for name, found in losses.items()), tuple(scores))


def _opening(arms: list[ArmView]) -> str:
    found = next((arm for arm in arms if arm.difference is not None), None)
    if found is None or found.difference_low is None or found.difference_high is None:
        return "No two runs can be compared yet."
    ends = points(found.difference_low), points(found.difference_high)
    return (
        f"{found.arm} is {found.word} from {found.against}: {points(found.difference)} points, {ends[0]} to {ends[1]}."
    )


def _arm(arm: str, place: int, reference: str, states: dict[int, str], counted: list[float], random: Random) -> ArmView:
    n, enough = len(counted), len(counted) > 1
    mean = sum(counted) / n if n else None
    half = (0.08 if n == 2 else 0.012) * random.uniform(0.7, 1.3)
    against = None if place == 0 else reference
    gap = None if mean is None or not against else mean - 0.86
    size = half * 1.2
    word = (
        None if gap is None or not enough else "worse" if gap < -size else "better" if gap > size else "not separable"
    )
    compared = gap if enough else None
    return ArmView(
        arm, place, n, len(states), dict(Counter(states.values())), n, mean,
        max(0.0, mean - half) if mean is not None and enough else None,
        min(1.0, mean + half) if mean is not None and enough else None, against, n, compared,
        None if compared is None else compared - size, None if compared is None else compared + size, word,
    )  # fmt: skip


def _curve(arm: str, place: int, own: dict[int, tuple[tuple[int, float], ...]], ended: list[int]) -> ArmCurve:
    inside = [own[seed] for seed in ended]
    columns = [[value for _, value in at] for at in zip(*inside, strict=True)]
    return ArmCurve(
        arm, place, tuple(step for step, _ in inside[0]) if inside else (),
        tuple(sum(values) / len(values) for values in columns), tuple(map(min, columns)), tuple(map(max, columns)), len(inside),
        tuple((seed, points) for seed, points in own.items() if seed not in ended),
    )  # fmt: skip


def _run(
    arm: str,
    place: int,
    seed: int,
    state: str,
    step: int,
    score: float,
    losses: tuple[tuple[int, float], ...],
    text: str,
) -> RunView:
    began = state != "waiting"
    reason = text or "the worker was killed (signal 9), perhaps for want of memory; `fairtune run` goes on with it"
    return RunView(
        arm, seed, 10 * seed + place, state, step if began else None, STEPS, 3 * step / STEPS if began else None, 3.0,
        losses[-1][1] if losses else None, score if began else None,
        None if not began else "test" if state == "finished" else "validation", 8.3 if state == "running" else None,
        95.0 if began else None, 1.2 * (STEPS - step) / 8.3 if state == "running" else None,
        (text or "training") if state == "running" else None, f"cpu-{place}" if state == "running" else None,
        reason if state == "failed" else None,
        (text or "12 of 2,000 examples were cut at 128 tokens",) if state == "running" and place == 1 else (),
    )  # fmt: skip


def _devices(text: str) -> tuple[DeviceView, ...]:
    return (
        DeviceView(text or "cuda-0", text or "cuda:0, NVIDIA A100", text or "baseline/seed-2", True, 1.0, 0.93,
                   31_000_000_000, 80_000_000_000, 71.0, 1),
        DeviceView("cpu-1", "cpu", None, False, 340.0, None, 2_100_000_000, 8_000_000_000, None, None),
    )  # fmt: skip
