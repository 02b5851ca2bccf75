"""What every method keeps to: killed and resumed it ends with the same bits; beside any other it trains, or is refused."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.execution.job import Job
from fairtune.ledger.events import EventLog, all_events, counted_events
from fairtune.methods.registry import clashes, conflicts, parse_method_use, registered
from fairtune.study.study_file import load_study
from fairtune.testing.runs import KILLED, ToyStudy, digests, perform_apart, perform_here

KILLS = (7, 14, 12)
"""Where a run is killed: before the first state, then ever further on, counted from where it was resumed."""
SHORT = {"steps": 4, "accumulate": 2, "evaluate": 2, "eval_examples": 20, "examples": 100}
"""Training that goes through every phase in a second."""


def toy_use(name: str) -> Any:
    """A method as an arm lists it, with the settings that it registered for toy tasks."""
    return {name: dict(registered()[name].toy)}


def check_method(
    toy: ToyStudy, name: str, idle: Mapping[str, Any] | None = None, others: Sequence[str] | None = None
) -> None:
    """All checks of a method.

    Args:
        idle: settings with which it changes nothing, if it has such.
        others: methods that it must get on with, or be refused beside; all if absent.

    Raises:
        AssertionError: it breaks a promise; the message says which.
    """
    check_state(toy, [toy_use(name)])
    check_resume(toy, [toy_use(name)])
    if idle is not None:
        check_idle(toy, [{name: dict(idle)}])
    check_composition(toy, name, others)


def check_task(toy: ToyStudy) -> None:
    """The checks of a task: a study of it runs, and killed and resumed it ends with the same bits.

    Args:
        toy: made with the task's name, see `make_toy`.
    """
    check_resume(toy, [])


def check_resume(toy: ToyStudy, methods: list[Any], whole: Job | None = None, kills: Sequence[int] = KILLS) -> Job:
    """Killed with SIGKILL again and again, in real processes, a run ends with the same bits as one that nothing broke.

    Args:
        whole: a finished run of the same plan, if there is one.
        kills: the safe point at which each attempt is killed.

    Returns:
        The run that was killed and went on.
    """
    if whole is None:
        whole = _new(toy, "whole", methods)
        code = perform_apart(whole)
        assert code == 0, f"the run ended with exit code {code}"
    reason = json.loads(whole.run.result.read_text()).get("reason")
    assert reason is None, f"the run failed: {reason}"
    broken = _new(toy, "broken", methods)
    for kill_at in kills:
        code = perform_apart(broken, kill_at=kill_at)
        assert code == KILLED, f"the run ended with exit code {code} before it could be killed at point {kill_at}"
    assert perform_apart(broken) == 0
    now, before = digests(broken.run.path), digests(whole.run.path)
    different = [name for name in before if now[name] != before[name]]
    assert not different, f"after it was killed and resumed, these are others than without: {', '.join(different)}"
    steps = [event["step"] for event in counted_events(broken.run.events) if event["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1)), "each step counts once"
    lost = sum(event["event"] == "step" for event in all_events(broken.run.events)) - len(steps)
    assert lost > 0, "what was lost stays on record"
    return broken


def check_state(toy: ToyStudy, methods: list[Any], units: int = 6) -> None:
    """What methods say must be saved is the same after it was saved and taken up by newly made methods.

    Args:
        units: steps and evaluations before the state is saved.
    """
    from fairtune.execution.prepare import prepare_run

    job = _new(toy, "state", methods)
    job.run.begin(job.plan)
    log = EventLog(job.run.events)
    try:
        run = prepare_run(job.spec, job.run, "cpu", log, lambda: None).run
        for _ in range(units):
            run.advance()
        run.save()
        again = prepare_run(job.spec, job.run, "cpu", log, lambda: None).run
        assert again.progress.unit == run.progress.unit, "the state was not taken up"
        for before, now in zip(run.methods, again.methods, strict=True):
            name, saved, found = type(before).__name__, before.state_dict(), now.state_dict()
            assert saved.keys() == found.keys(), f"{name}: its state has other names after it was taken up"
            for key, value in saved.items():
                assert _same(value, found[key]), f"{name}: '{key}' of its state is another after it was taken up"
    finally:
        log.close()


def check_idle(toy: ToyStudy, methods: list[Any]) -> None:
    """Methods with settings that change nothing train to the same bits as no methods at all."""
    plain, idle = _new(toy, "plain", []), _new(toy, "idle", methods)
    for job in (plain, idle):
        result = perform_here(job)
        assert result["status"] == "finished", result.get("reason")
    assert digests(idle.run.path) == digests(plain.run.path), "it is idle, and still changes what is trained"


def check_composition(toy: ToyStudy, name: str, others: Sequence[str] | None = None) -> None:
    """Beside each other method it trains, or the study is refused when it is read.

    Args:
        others: by name; all if absent.
    """
    known = registered()
    chosen = known if others is None else others
    uses = {other: toy_use(other) for other in chosen if "classify" in known[other].kinds} | {name: toy_use(name)}
    pairs = [(name, other) for other in uses if other != name]
    for pair in pairs:
        if not fit([uses[one] for one in pair]) and not fit([uses[one] for one in reversed(pair)]):
            check_refused(toy, [uses[one] for one in pair])
    for arm in covering_arms(uses, name):
        check_together(toy, [uses[one] for one in arm])


def check_refused(toy: ToyStudy, methods: list[Any]) -> None:
    """A study with these methods in one arm is refused when it is read, in either order."""
    for order in itertools.permutations(methods):
        try:
            load_study({**toy.source, "arms": {"baseline": {}, "both": {"methods": list(order)}}})
        except FairtuneError as error:
            reason = str(error)
        else:
            raise AssertionError(f"not refused: {order}")
        assert "arms.both.methods" in reason, f"refused for another reason: {reason}"


def check_together(toy: ToyStudy, methods: list[Any]) -> None:
    """These methods train in one arm."""
    result = perform_here(_new(toy, "together", methods, **SHORT))
    assert result["status"] == "finished", f"{methods}: {result.get('reason')}"
    assert all(0.0 <= score <= 1.0 for score in [result["metrics"]["test"]["accuracy"]])


def fit(methods: Sequence[Any]) -> bool:
    """Whether methods may be in one arm, in this order."""
    uses = [parse_method_use(method) for method in methods]
    return not conflicts(uses) and not clashes(uses)


def covering_arms(uses: Mapping[str, Any], among: str | None = None) -> list[tuple[str, ...]]:
    """Few arms of many methods, so that every pair that fits in the order of the list is in one of them.

    Args:
        uses: methods by a name of theirs, as arms list them.
        among: only pairs with this one.
    """
    order = list(uses)

    def fitting(pair: tuple[str, ...]) -> bool:
        return fit([uses[name] for name in pair])

    def in_order(names: set[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=order.index))

    pairs = [pair for pair in itertools.combinations(order, 2) if among is None or among in pair]
    backwards = {pair for pair in pairs if not fitting(pair) and fitting(pair[::-1])}
    left, arms = {pair for pair in pairs if fitting(pair)}, []
    while left:
        arm: tuple[str, ...] = min(left)
        for name in order:
            wider = in_order({*arm, name})
            if all(map(fitting, itertools.combinations(wider, 2))) and any(
                pair in left for pair in itertools.combinations(wider, 2) if name in pair
            ):
                arm = wider
        arms.append(arm)
        left -= set(itertools.combinations(arm, 2))
    return arms + ([pair[::-1] for pair in sorted(backwards)] if among else [])


def _new(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> Job:
    """A run in a folder that no other has."""
    toy.root.mkdir(parents=True, exist_ok=True)
    return toy.job(Path(tempfile.mkdtemp(prefix=f"{name}-", dir=toy.root)).name, methods, **train)


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one.cpu(), other.cpu())
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return False
    return bool(json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))
