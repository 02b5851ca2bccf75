"""What every method keeps to: killed and resumed it ends with the same bits; next to any other it trains, or is refused."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.ledger.events import EventLog, all_events, counted_events
from fairtune.methods.registry import conflicts, parse_method_use, registered
from fairtune.study.run_spec import RunSpec
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
        others: methods that it must train with, or be refused with; all if absent.

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


def check_resume(
    toy: ToyStudy, methods: list[Any], whole: RunSpec | None = None, kills: Sequence[int] = KILLS
) -> RunSpec:
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
    assert not different, f"these differ from those of a run that was never killed: {', '.join(different)}"
    steps = [event["step"] for event in counted_events(broken.run.events) if event["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1)), "each step counts once"
    lost = sum(event["event"] == "step" for event in all_events(broken.run.events)) - len(steps)
    assert lost > 0, "what was lost stays on record"
    return broken


def check_state(toy: ToyStudy, methods: list[Any], units: int = 6) -> None:
    """What methods say must be saved is the same after it was saved and loaded by newly made methods.

    Args:
        units: steps and evaluations before the state is saved.
    """
    import torch

    from fairtune.execution.prepare import prepare_run

    job = _new(toy, "state", methods)
    job.run.begin(job.as_json())
    log = EventLog(job.run.events)
    try:
        run = prepare_run(job, "cpu", log, lambda: None).run
        for _ in range(units):
            run.advance()
        run.save()
        again = prepare_run(job, "cpu", log, lambda: None).run
    finally:
        log.close()
    assert again.progress.unit == run.progress.unit, "the state was not loaded"
    for before, now in zip(run.methods, again.methods, strict=True):
        name, saved, found = type(before).__name__, before.state_dict(), now.state_dict()
        assert saved.keys() == found.keys(), f"{name}: its state has other names after it was loaded"
        for key, value in saved.items():
            now_value = found[key]
            if isinstance(value, torch.Tensor):
                same = isinstance(now_value, torch.Tensor) and value.dtype == now_value.dtype
                same = same and torch.equal(value.cpu(), now_value.cpu())
            else:
                same = json.dumps(value, sort_keys=True) == json.dumps(now_value, sort_keys=True)
            assert same, f"{name}: '{key}' of its state differs after it was loaded"


def check_idle(toy: ToyStudy, methods: list[Any]) -> None:
    """Methods with settings that change nothing train to the same bits as no methods at all."""
    plain, idle = _new(toy, "plain", []), _new(toy, "idle", methods)
    for job in (plain, idle):
        result = perform_here(job)
        assert result["status"] == "finished", result.get("reason")
    assert digests(idle.run.path) == digests(plain.run.path), "it is idle, and still changes what is trained"


def check_composition(toy: ToyStudy, name: str, others: Sequence[str] | None = None) -> None:
    """With each other method it trains, or the study is refused when it is read.

    Args:
        others: by name; all if absent.
    """
    known = registered()
    for other in known if others is None else others:
        if other == name or "classify" not in known[other].kinds:
            continue
        pair = [toy_use(name), toy_use(other)]
        order = next((order for order in (pair, pair[::-1]) if fit(order)), None)
        if order is None:
            check_refused(toy, pair)
        else:
            check_together(toy, order)


def check_refused(toy: ToyStudy, methods: list[Any]) -> None:
    """A study with these methods in one arm is refused when it is read, in either order."""
    for order in itertools.permutations(methods):
        reason = None
        try:
            load_study({**toy.source, "arms": {"baseline": {}, "both": {"methods": list(order)}}})
        except FairtuneError as error:
            reason = str(error)
        assert reason is not None, f"not refused: {order}"
        assert "arms.both.methods" in reason, f"refused for another reason: {reason}"


def check_together(toy: ToyStudy, methods: list[Any]) -> None:
    """These methods train in one arm."""
    result = perform_here(_new(toy, "together", methods, **SHORT))
    assert result["status"] == "finished", f"{methods}: {result.get('reason')}"
    assert 0.0 <= result["metrics"]["test"]["accuracy"] <= 1.0


def fit(methods: Sequence[Any]) -> bool:
    """Whether methods may be in one arm, in this order."""
    return not conflicts([parse_method_use(method) for method in methods])


def _new(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> RunSpec:
    """A run in a folder that no other has."""
    toy.root.mkdir(parents=True, exist_ok=True)
    return toy.job(Path(tempfile.mkdtemp(prefix=f"{name}-", dir=toy.root)).name, methods, **train)
