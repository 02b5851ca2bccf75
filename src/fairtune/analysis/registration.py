"""Registration: the first plan of a study, what was changed since, and how often verdicts were taken.

Whoever changes a margin, drops a seed or gives up an arm after seeing results may be choosing the answer. Nobody is kept from it,
but the first lines of every report say so with dates, and verdicts go by what was planned before the first result was known,
unless the user asks for a new analysis, which is said too.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fairtune.core.numbers import setting
from fairtune.ledger.studies import TIME, GoneRun

COMPARED = ("to", "margin", "confidence", "threshold")
"""What verdicts go by, and what may not change after a result was known."""
TITLES = {"to": "reference", "margin": "margin", "confidence": "confidence", "threshold": "decision line"}
USUAL = {"threshold": "half", "also": []}
"""What a plan means that does not say it."""


OUT, IN = ("part of the study", "none of it"), ("none of the study", "part of it")
"""What became of an arm."""
GONE = ("on record", "not there")
"""What became of a run that was moved away or deleted."""


@dataclass(frozen=True)
class PlanChange:
    """One thing that a later plan had otherwise than the plan before it.

    Args:
        when: the later plan was recorded; empty where it is not on record.
        known: results that were on record then.
    """

    when: str
    what: str
    before: str
    after: str
    known: int

    def __str__(self) -> str:
        results = {0: "before any result was known", 1: "after one result was known"}
        known = results.get(self.known, f"after {self.known} results were known")
        how = {OUT: "was taken out", IN: "was added", GONE: "moved away or deleted"}
        changed = how.get((self.before, self.after), f"changed from {self.before} to {self.after}")
        when = day(self.when) if self.when else "Not on record when"
        return f"{when}, {known}: {self.what} {changed}"


@dataclass(frozen=True)
class StudyRegistration:
    """What was fixed, and when.

    Args:
        recorded: the first plan was; None where there is no record of it.
        compare: the reference, margin and confidence that verdicts go by.
        overruled: names of those in which the newest plan differs, which changes no verdict.
        reanalysed: when the user asked for verdicts by the newest plan all the same.
        given_up: arms with results that the newest plan does not have; they still count in the correction.
        given_up_learners: simple baselines of which the same holds; they have a correction of their own.
        dropped: seeds with results that the newest plan does not have.
        reference_gone: the reference that verdicts should go by, where the newest plan does not have it.
        additions: when seeds were added, in seconds, and the seeds that there were before: each may have been a look.
        most: seeds at which all of the risk is spent.
        planned_looks: whether looks were planned from the start; else verdicts were meant to be taken once.
        missing: plans under which runs were made, of which there is no record.
        known_before: results that were on record when the first plan was.
        beside: further metrics, of the plan before the first result and of the newest one.
        late: those of them that were named after results were known.
    """

    recorded: str | None
    changes: tuple[PlanChange, ...]
    compare: dict[str, Any]
    overruled: tuple[str, ...] = ()
    reanalysed: str | None = None
    given_up: tuple[str, ...] = ()
    given_up_learners: tuple[str, ...] = ()
    dropped: tuple[int, ...] = ()
    reference_gone: str | None = None
    additions: tuple[tuple[float, tuple[int, ...]], ...] = ()
    most: int = 0
    planned_looks: bool = False
    missing: tuple[str, ...] = ()
    known_before: int = 0
    beside: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    @property
    def threshold(self) -> str:
        """Where two classes are told apart: `half`, or `validation`."""
        return str(_compared(self.compare, "threshold"))

    @property
    def fixed_before(self) -> bool:
        """Whether what verdicts go by was fixed before the first result, and nothing that matters was touched since."""
        touched = any(change.known for change in self.changes)
        return self.recorded is not None and not (touched or self.reanalysed or self.missing or self.known_before)


@dataclass(frozen=True)
class KnownRun:
    """A run on disk with a result.

    Args:
        time: at which it ended; None if it does not say.
        plan: under which it was made.
    """

    arm: str
    seed: int
    time: float | None
    plan: str | None


def register(
    newest: Mapping[str, Any],
    plans: Sequence[Mapping[str, Any]],
    runs: Iterable[KnownRun],
    removed: Sequence[GoneRun] = (),
) -> StudyRegistration:
    """What a study's plans and results say about when its analysis was fixed.

    Args:
        newest: the plan that is in force.
        plans: every plan on record, the oldest first.
        runs: every run on disk that has a result, whatever plan it belongs to.
        removed: runs that had a result and were moved away or deleted.
    """
    found = list(runs)
    history = list(plans)
    if not history or history[-1]["plan"] != newest["plan"]:
        beside = tuple(_compared(newest["compare"], "also"))
        return StudyRegistration(None, (), dict(newest["compare"]), most=len(_seeds_of(newest)), beside=beside)
    changes = [
        change for before, after in pairwise(history) for change in _changes(before, after, _known(after, found))
    ]
    changes = sorted([*changes, *_removals(removed)], key=lambda change: change.when or "later")
    planned = [plan for plan in history if not _known(plan, found)] or history[:1]
    registered, reanalysed = planned[-1], history[-1].get("reanalysed")
    compare: dict[str, Any] = dict(newest["compare"])
    overruled: tuple[str, ...] = ()
    if not reanalysed:
        before: Mapping[str, Any] = registered["compare"]
        overruled = tuple(name for name in COMPARED if _compared(compare, name) != _compared(before, name))
        kept = [name for name in COMPARED if name != "to" or before.get("to") in newest["arms"]]
        stated = [name for name in kept if name not in USUAL or name in overruled]
        compare |= {name: _compared(before, name) for name in stated}
    gone = str(registered["compare"]["to"]) if registered["compare"]["to"] not in newest["arms"] else None
    first, last = (list(_compared(plan["compare"], "also")) for plan in (registered, newest))
    known = {plan["plan"] for plan in plans} | {newest["plan"]}
    sequential = registered.get("until_decided")
    additions = tuple(
        (_second(after), tuple(_seeds_of(before)))
        for before, after in pairwise(history)
        if set(_seeds_of(after)) - set(_seeds_of(before))
    )
    return StudyRegistration(
        recorded=str(history[0]["recorded"]),
        changes=tuple(changes),
        compare=compare,
        overruled=overruled,
        reanalysed=None if reanalysed is None else str(reanalysed),
        given_up=_given_up(history, newest, found, learners=False),
        given_up_learners=_given_up(history, newest, found, learners=True),
        dropped=_dropped(history, newest, found),
        reference_gone=None if reanalysed else gone,
        additions=additions,
        most=int(sequential) if sequential else max(len(_seeds_of(plan)) for plan in history[len(planned) - 1 :]),
        planned_looks=bool(sequential),
        missing=tuple(sorted({run.plan for run in found if run.plan is not None} - known)),
        known_before=_known(history[0], found),
        beside=tuple(dict.fromkeys([*first, *last])),
        late=tuple(name for name in last if name not in first),
    )


def _seeds_of(plan: Mapping[str, Any]) -> list[int]:
    return list(plan.get("seeds") or dict.fromkeys(run["seed"] for run in plan["runs"]))


def _second(plan: Mapping[str, Any]) -> float:
    return float(calendar.timegm(time.strptime(str(plan["recorded"]), TIME)))


def _known(plan: Mapping[str, Any], runs: Iterable[KnownRun]) -> int:
    """Results that were on record when a plan was: those that it counted, or that ended before it."""
    ended = sum(run.time is not None and run.time < _second(plan) for run in runs)
    return max(int(plan.get("known") or 0), ended)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], known: int) -> Iterable[PlanChange]:
    parts: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        **{TITLES[name]: _compared_part(name) for name in COMPARED},
        "further metrics": lambda plan: list(_compared(plan["compare"], "also")) or None,
        **({} if _is_planned_look(before, after) else {"seeds": _seeds_of}),
        **({"most seeds": lambda plan: plan.get("until_decided")} if after.get("until_decided") else {}),
        "metric": lambda plan: plan["task"].get("metric"),
        "tuning": _tuning_text,
        "data": lambda plan: f"{plan['task'].get('name')}@{str(plan['task'].get('fingerprint'))[:8]}",
        "model": lambda plan: f"{plan['model'].get('name')}@{str(plan['model'].get('identity'))[:8]}",
    }
    for what, part in parts.items():
        if part(before) != part(after):
            yield PlanChange(str(after["recorded"]), what, _text(part(before)), _text(part(after)), known)
    old, new = ({one["module"]: one["sha256"][:8] for one in plan.get("plugins") or ()} for plan in (before, after))
    for module in old.keys() & new.keys():
        if old[module] != new[module]:
            yield PlanChange(str(after["recorded"]), f"code of plug-in {module}", old[module], new[module], known)
    for arm in dict.fromkeys([*before["arms"], *after["arms"]]):
        if arm not in after["arms"]:
            yield PlanChange(str(after["recorded"]), f"arm {arm}", *OUT, known)
        elif arm not in before["arms"]:
            yield PlanChange(str(after["recorded"]), f"arm {arm}", *IN, known)
        else:
            yield from _changes_of_arm(before, after, arm, known)


def _removals(gone: Iterable[GoneRun]) -> Iterable[PlanChange]:
    """One change for the runs of an arm that were found to be gone at the same time."""
    together: dict[tuple[str, str, str], list[GoneRun]] = {}
    for run in gone:
        together.setdefault((run.noticed, run.ending.status, run.ending.arm), []).append(run)
    for (when, status, arm), runs in together.items():
        seeds, several = ", ".join(str(run.ending.seed) for run in runs), "s" if len(runs) > 1 else ""
        yield PlanChange(when, f"{status} run{several} of {arm} (seed{several} {seeds})", *GONE, runs[0].known)


def _tuning_text(plan: Mapping[str, Any]) -> str:
    """How settings came about, so that another way is another text."""
    found = plan.get("tuning")
    if not found:
        return "settings as given"
    return f"{found['trials']} trials of {', '.join(found['space'])}, n = {len(found['seeds'])} ({found['plan']})"


def _changes_of_arm(before: Mapping[str, Any], after: Mapping[str, Any], arm: str, known: int) -> Iterable[PlanChange]:
    old, new = before["arms"][arm], after["arms"][arm]
    if "primary" in old and "primary" in new and old["primary"] != new["primary"]:
        names = (str(old["primary"] or "none"), str(new["primary"] or "none"))
        yield PlanChange(str(after["recorded"]), f"what arm {arm} is compared with", *names, known)
    if changed := ", ".join(_differing(old, new)):
        yield PlanChange(str(after["recorded"]), f"{changed} of arm {arm}", *_values(before, after, arm), known)


def _is_planned_look(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Seeds that were added as planned are no change."""
    planned = before.get("until_decided") and after.get("until_decided")
    return bool(planned) and set(_seeds_of(before)) <= set(_seeds_of(after))


def _compared_part(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda plan: _compared(plan["compare"], name)


def _compared(compare: Mapping[str, Any], name: str) -> Any:
    return compare.get(name, USUAL.get(name))


def _definition(plan: Mapping[str, Any], arm: str) -> tuple[Any, ...]:
    """What an arm trains with, the code of its plug-ins included."""
    found = plan["arms"][arm]
    code = next((run.get("settings", {}).get("plugins") for run in plan["runs"] if run["arm"] == arm), None)
    return found.get("methods"), found.get("train"), found.get("learner"), code


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new = before.get("train") or {}, after.get("train") or {}
    settings = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    others = [name for name in ("methods", "learner") if before.get(name) != after.get(name)]
    return [*others, *settings]


def _values(before: Mapping[str, Any], after: Mapping[str, Any], arm: str) -> tuple[str, str]:
    """The values of what differs, where that is one setting."""
    old, new = before["arms"][arm], after["arms"][arm]
    names = _differing(old, new)
    if names == ["methods"]:
        return _text(_names(old)), _text(_names(new))
    if names == ["learner"]:
        return _text(old.get("learner")), _text(new.get("learner"))
    if len(names) == 1:
        return _text(old["train"].get(names[0])), _text(new["train"].get(names[0]))
    return "what they were", "other values"


def _names(arm: Mapping[str, Any]) -> list[str]:
    found = [str(dict(use)) if isinstance(use, Mapping) else str(use) for use in arm.get("methods") or ()]
    return found or ["none"]


def _text(value: Any) -> str:
    if isinstance(value, list):
        consecutive = (
            len(value) > 2 and value == list(range(value[0], value[0] + len(value))) if _whole(value) else False
        )
        return f"{value[0]}–{value[-1]}" if consecutive else ", ".join(map(str, value))
    return "none" if value is None else setting(value)


def _whole(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _given_up(
    history: Sequence[Mapping[str, Any]], newest: Mapping[str, Any], runs: Sequence[KnownRun], learners: bool
) -> tuple[str, ...]:
    """Arms, or earlier forms of an arm, that had results when a later plan no longer had them.

    Args:
        learners: those that are simple baselines, or else the others.
    """
    with_results = {run.arm for run in runs}
    now = [_definition(newest, arm) for arm in newest["arms"]]
    given_up: list[tuple[str, tuple[Any, ...]]] = []
    for before, after in pairwise(history):
        for arm, own in before["arms"].items():
            if bool(own.get("learner")) != learners:
                continue
            definition = _definition(before, arm)
            seen = arm in with_results and _known(after, runs)
            if seen and definition not in now and definition not in [known for _, known in given_up]:
                given_up.append((arm, definition))
    names = [arm for arm, _ in given_up]
    return tuple(
        arm if names.index(arm) == place else f"{arm} (form {names[: place + 1].count(arm)})"
        for place, arm in enumerate(names)
    )


def _dropped(
    history: Sequence[Mapping[str, Any]], newest: Mapping[str, Any], runs: Sequence[KnownRun]
) -> tuple[int, ...]:
    """Seeds with results of arms that the newest plan has, by whatever name, which it leaves out."""
    plans = {plan["plan"]: plan for plan in history}
    now = [_definition(newest, arm) for arm in newest["arms"]]
    seeds = set()
    for run in runs:
        plan = plans.get(str(run.plan), newest)
        if run.arm in plan["arms"] and _definition(plan, run.arm) in now:
            seeds.add(run.seed)
    return tuple(sorted(seeds - set(_seeds_of(newest))))


def day(when: str) -> str:
    """A recorded time as people write it: 2026-11-17 06:40 UTC."""
    return when.replace("T", " ")[:16] + " UTC"
