"""What timing sessions show: each arm's step against that of the arm it is compared with, the A/A, and under what conditions.

All sessions on the machine of the newest one count together, so that nobody chooses among them. A session counts for an arm as
long as its plan has the very runs that were timed.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtune.analysis.block_ratios import BlockRatio, block_ratio
from fairtune.analysis.step_bounds import expected_ratio, flops_of, lowest_ratio, lowest_with_optimizer
from fairtune.analysis.timing_conditions import Conditions, describe_conditions
from fairtune.ledger.timings import AGAIN

CLEAR = 0.01
"""A smaller change of a step's time is none: two copies of one model differ by as much through where their memory lies."""
NONE = 0.03
"""An interval within so much of 1 shows that there is no change to speak of; a wider one that holds 1 shows nothing."""
PARTS = ("data", "forward", "backward", "optimizer", "method")
Session = Mapping[str, Any]


@dataclass(frozen=True)
class StepRatio:
    """An arm's step against that of the arm that it is compared with.

    Args:
        found: at the study's confidence.
        family: at a confidence that holds for all arms of the study together.
        seconds: of the other arm's step.
        bound: lowest ratio that matrix products allow; None if it is not known.
        floor: the lowest ratio that they and the optimizer's updates allow.
        expected: what counting passes through the model predicts; None if a step's work differs otherwise.
    """

    arm: str
    other: str
    found: BlockRatio
    family: BlockRatio
    seconds: float
    bound: float | None = None
    floor: float | None = None
    expected: float | None = None

    @property
    def gap(self) -> tuple[float, float, float]:
        """Seconds per step that the arm takes longer, with its interval; negative where it is faster."""
        found = self.found
        return tuple((end - 1) * self.seconds for end in (found.ratio, found.low, found.high))  # type: ignore[return-value]

    @property
    def implausible(self) -> bool:
        """Whether even the slow end of the interval is faster than counting allows."""
        return self.floor is not None and self.found.high < self.floor

    @property
    def change(self) -> float | None:
        """The change of a step's time as a share: 0 where there is none to speak of, None where that is not known well enough."""
        if not self.family.holds_one and abs(self.found.ratio - 1) >= CLEAR:
            return self.found.ratio - 1
        return 0.0 if abs(self.family.low - 1) <= NONE and abs(self.family.high - 1) <= NONE else None

    def run_seconds(self, ratio: float, times: Mapping[str, ArmTime]) -> tuple[float, float]:
        """What a run of the arm takes if a step takes `ratio` of the other's, and what a run of the other takes."""
        ours, theirs = times[self.arm], times[self.other]
        return ours.run_seconds(ratio * self.seconds), theirs.run_seconds(self.seconds)

    @property
    def reached(self) -> float | None:
        """The share of the saving that matrix products allow; None where they allow none."""
        return None if self.bound is None or self.bound >= 1 else (1 - self.found.ratio) / (1 - self.bound)


@dataclass(frozen=True)
class ArmTime:
    """What one arm took.

    Args:
        seconds: of a step.
        parts: seconds of its parts.
        memory: bytes at the peak, counted the same way for all arms; None if not known.
        epoch_seconds: what its methods take after each epoch, besides the steps.
        steps: of a run.
    """

    arm: str
    seconds: float
    parts: dict[str, float]
    memory: int | None
    epoch_seconds: float
    steps_per_epoch: int
    steps: int

    def run_seconds(self, step: float) -> float:
        """Seconds of training a run, if a step takes so long."""
        return step * self.steps + self.epoch_seconds * (self.steps // max(1, self.steps_per_epoch))

    def does_as(self, other: ArmTime) -> bool:
        """Whether a run of it makes as many steps as the other's, and nothing to speak of besides."""
        extra = (one.epoch_seconds > CLEAR * one.seconds * one.steps_per_epoch for one in (self, other))
        return self.steps == other.steps and not any(extra)


@dataclass(frozen=True)
class StudyTiming:
    """All that was timed of a study, on one machine.

    Args:
        ratios: by arm, against the arm that it is compared with.
        again: the reference against a second copy of itself, in the same rounds.
        sessions, rounds, seconds: how much was measured.
        elsewhere: sessions on other machines, which are not counted.
        processor: whether times are those that the process had the processor; else they are those of a clock on the wall.
    """

    reference: str
    confidence: float
    arms: dict[str, ArmTime]
    ratios: dict[str, StepRatio]
    again: BlockRatio
    sessions: int
    rounds: int
    seconds: float
    elsewhere: int
    processor: bool
    conditions: Conditions
    interrupted: bool
    _plan: Mapping[str, Any] = field(repr=False)
    _used: Sequence[Session] = field(repr=False)

    def between(self, arm: str, other: str) -> StepRatio | None:
        """Any two arms that were timed; None where they were not, in the same rounds."""
        if arm not in self.arms or other not in self.arms:
            return None
        return _step_ratio(self._plan, self._used, arm, other, self.confidence, self.confidence, self.arms)

    def round_seconds(self, arm: str, other: str) -> tuple[list[float], list[float]] | None:
        """Seconds of a step of two arms, round by round where both were timed; None where they were not."""
        if arm not in self.arms or other not in self.arms:
            return None
        return _paired_rounds(self._used, arm, other, clock_of(self._used[-1]), _keys(self._plan))

    def parameters(self, arm: str) -> Mapping[str, int] | None:
        """What was counted of an arm's parameters; None where it was not timed."""
        found: Mapping[str, int] | None = (
            _facts(self._used, arm, _keys(self._plan))["parameters"] if arm in self.arms else None
        )
        return found

    @property
    def trusted(self) -> bool:
        """Whether the reference was found as fast as itself, give or take what is no change; else nothing follows."""
        return math.isfinite(self.again.high) and self.again.low <= 1 + CLEAR and self.again.high >= 1 - CLEAR

    @property
    def precision(self) -> float:
        """The largest half-width of an interval, the A/A's among them."""
        return max(ratio.half_width for ratio in (self.again, *(one.found for one in self.ratios.values())))

    def sound_ratio(self, arm: str) -> StepRatio | None:
        """An arm's ratio to its control; None where it was not timed, the A/A failed, or counting rules the ratio out."""
        found = self.ratios.get(arm) if self.trusted else None
        return None if found is None or found.implausible else found

    def change(self, arm: str) -> float | None:
        """The change of an arm's step time as a share: 0 where none is clear, None where it cannot be known."""
        found = self.sound_ratio(arm)
        return None if found is None else found.change


def judge_times(
    plan: Mapping[str, Any], sessions: Sequence[Session], arms: Iterable[str] | None = None
) -> StudyTiming | None:
    """What the sessions of a plan show; None where there is none of it.

    Args:
        plan: as the ledger keeps it.
        arms: to judge, as one family; None is all that were timed.
    """
    keys = _keys(plan)
    reference, confidence = str(plan["compare"]["to"]), float(plan["compare"]["confidence"])
    known = [
        one for one in _different(sessions) if one["rounds"] and one["reference"] == reference and _is_of(one, keys)
    ]
    if not known:
        return None
    machine = _machine(known[-1])
    used = [session for session in known if _machine(session) == machine]
    clock = clock_of(used[-1])
    timed = [arm for arm in plan["arms"] if any(_has(session, arm, keys) for session in used)]
    pairs = {arm: plan["arms"][arm]["primary"] for arm in timed if arms is None or arm in set(arms)}
    wanted = {arm: other for arm, other in pairs.items() if other in timed}
    level = 1 - (1 - confidence) / max(1, len(wanted))
    base = _base_seconds(used, reference, clock)
    times = {arm: _arm_time(used, arm, reference, base, clock, keys) for arm in timed}
    found = {arm: _step_ratio(plan, used, arm, other, confidence, level, times) for arm, other in wanted.items()}
    return StudyTiming(
        reference=reference,
        confidence=confidence,
        arms=times,
        ratios={arm: one for arm, one in found.items() if one is not None},
        again=_ratio(used, AGAIN, reference, clock, confidence, keys),
        sessions=len(used),
        rounds=sum(len(counted_rounds(session)) for session in used),
        seconds=sum(float(session.get("seconds", 0.0)) for session in used),
        elsewhere=len(known) - len(used),
        processor=clock == "processor",
        conditions=describe_conditions(used),
        interrupted=bool(used[-1].get("interrupted")),
        _plan=plan,
        _used=used,
    )


def clock_of(session: Session) -> str:
    """The clock by which a session is judged: with one thread on a CPU, the time for which it really had the processor.

    Several threads would count while they wait for each other, and a GPU does not work on the processor's time at all.
    """
    return "processor" if session["device"] == "cpu" and session["threads"] == 1 else "wall"


def counted_rounds(session: Session) -> list[Mapping[str, Any]]:
    """Rounds whose steps were not taken apart on a device that works ahead."""
    return [one for one in session["rounds"] if not one.get("apart")]


def _keys(plan: Mapping[str, Any]) -> set[str]:
    return {run["key"] for run in plan["runs"]}


def _is_of(session: Session, keys: set[str]) -> bool:
    return session["keys"].get(session["reference"]) in keys


def _has(session: Session, arm: str, keys: set[str]) -> bool:
    return arm in session["arms"] and session["keys"].get(session["reference"] if arm == AGAIN else arm) in keys


def _machine(session: Session) -> tuple[Any, ...]:
    """What must be the same for times to be comparable."""
    found = session["environment"]
    gpus = tuple(str(gpu.get("name")) for gpu in (found.get("load") or {}).get("gpus") or ())
    versions = tuple((found.get("packages") or {}).get(name) for name in ("torch", "transformers"))
    hardware = (session["device"], session["threads"], found.get("cpu"), str(found.get("cores")), gpus)
    return *hardware, found.get("fairtune"), versions


def _different(sessions: Sequence[Session]) -> list[Session]:
    """Each session once, however often its file was copied."""
    return list({json.dumps([one["time"], one["rounds"]]): one for one in sessions}.values())


def _seconds(session: Session, arm: str, clock: str) -> Iterator[float]:
    """Seconds of a step, round by round."""
    for one in counted_rounds(session):
        turns = one["turns"][arm]
        yield sum(turn[clock] for turn in turns) / (len(turns) * one["steps"])


def _ratio(
    sessions: Sequence[Session], arm: str, other: str, clock: str, confidence: float, keys: set[str]
) -> BlockRatio:
    return block_ratio(*_paired_rounds(sessions, arm, other, clock, keys), confidence)


def _paired_rounds(
    sessions: Sequence[Session], arm: str, other: str, clock: str, keys: set[str]
) -> tuple[list[float], list[float]]:
    both = [session for session in sessions if _has(session, arm, keys) and _has(session, other, keys)]
    ours, theirs = ([s for session in both for s in _seconds(session, name, clock)] for name in (arm, other))
    return ours, theirs


def _base_seconds(sessions: Sequence[Session], reference: str, clock: str) -> float:
    """The reference's step, to which ratios give the seconds of the others: a mean, since batches differ in length."""
    return statistics.fmean(s for session in sessions for s in _seconds(session, reference, clock))


def _arm_time(
    sessions: Sequence[Session], arm: str, reference: str, base: float, clock: str, keys: set[str]
) -> ArmTime:
    ratio = 1.0 if arm == reference else _ratio(sessions, arm, reference, clock, 0.95, keys).ratio
    of_it = [session for session in sessions if _has(session, arm, keys)]
    facts, seconds = _facts(sessions, arm, keys), base * ratio
    return ArmTime(
        arm=arm,
        seconds=seconds,
        parts=_parts(of_it, arm, seconds),
        memory=(facts.get("memory") or {}).get("peak_bytes"),
        epoch_seconds=float(facts.get("epoch_seconds") or 0.0),
        steps_per_epoch=int(facts["steps_per_epoch"]),
        steps=int(facts["steps"]),
    )


def _parts(sessions: Sequence[Session], arm: str, seconds: float) -> dict[str, float]:
    """A step taken apart, in seconds; each part's median share of a step's clock, so that no disturbed step decides."""
    turns = [turn for s in sessions for one in s["rounds"] for turn in one["turns"][arm] if "forward" in turn]
    if not turns:
        return {}
    found = {name: seconds * statistics.median(turn.get(name, 0.0) / turn["wall"] for turn in turns) for name in PARTS}
    return {**found, "rest": max(0.0, seconds - sum(found.values()))}


def _step_ratio(
    plan: Mapping[str, Any],
    sessions: Sequence[Session],
    arm: str,
    other: str,
    confidence: float,
    family: float,
    times: Mapping[str, ArmTime],
) -> StepRatio | None:
    """Two arms with their bounds; None where no session has both.

    Args:
        family: confidence of the interval that holds for several comparisons together.
    """
    keys, clock = _keys(plan), clock_of(sessions[-1])
    found = _ratio(sessions, arm, other, clock, confidence, keys)
    if not found.n:
        return None
    ours, theirs = plan["arms"][arm], plan["arms"][other]
    expected = expected_ratio(ours.get("step_factor"), theirs.get("step_factor"), ours["train"], theirs["train"])
    facts, others = (_facts(sessions, name, keys) for name in (arm, other))
    bound = floor = None
    if expected is None or math.isclose(
        expected, 1
    ):  # the optimizer's share makes more passes cheaper than their number
        bound = lowest_ratio(
            flops_of(facts.get("costs")), flops_of(others.get("costs")), ours["train"], theirs["train"]
        )
    if bound is not None:
        trainable = facts["parameters"]["trainable"] / max(1, others["parameters"]["trainable"])
        floor = lowest_with_optimizer(bound, times[other].parts, trainable)
    together = _ratio(sessions, arm, other, clock, family, keys)
    return StepRatio(arm, other, found, together, times[other].seconds, bound, floor, expected)


def _facts(sessions: Sequence[Session], arm: str, keys: set[str]) -> Mapping[str, Any]:
    """What is known of an arm besides its times, from the newest session that has it."""
    found: Mapping[str, Any] = next(one["arms"][arm] for one in reversed(sessions) if _has(one, arm, keys))
    return found
