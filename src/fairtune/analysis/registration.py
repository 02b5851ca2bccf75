"""Registration: the first plan of a study, what was changed since, and how often verdicts were taken.

Whoever changes a margin, drops a seed or gives up an arm after seeing results may be choosing the answer. Nobody is kept from it,
but the first lines of every report say so with dates, and verdicts go by what was planned before the first result was known,
unless the user asks for a new analysis, which is said too.
"""

from __future__ import annotations

import calendar
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.looks import EXTENSION, MOST
from fairtune.ledger.studies import TIME

COMPARED = ("to", "margin", "confidence")
"""What verdicts go by, and what may not change after a result was known."""
TITLES = {"to": "reference", "margin": "margin", "confidence": "confidence"}
FEWEST = 2
"""Seeds from which on results show a difference at all."""


@dataclass(frozen=True)
class PlanChange:
    """One thing that a later plan had otherwise than the plan before it.

    Args:
        when: the later plan was recorded.
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
        return f"{day(self.when)}, {known}: {self.what} changed from {self.before} to {self.after}"


@dataclass(frozen=True)
class StudyRegistration:
    """What was fixed, and when.

    Args:
        recorded: the first plan was; None where there is no record of it.
        compare: the reference, margin and confidence that verdicts go by.
        overruled: names of those in which the newest plan differs, which changes no verdict.
        reanalysed: when the user asked for verdicts by the newest plan all the same.
        given_up: arms with results that the newest plan does not have; they still count in the correction.
        dropped: seeds with results that the newest plan does not have.
        looks: seeds of each look before this one.
        most: seeds at which all of the risk is spent.
        planned_looks: whether looks were planned from the start; else verdicts were meant to be taken once.
        missing: plans under which runs were made, of which there is no record.
        known_before: results that were on record when the first plan was.
    """

    recorded: str | None
    changes: tuple[PlanChange, ...]
    compare: dict[str, Any]
    overruled: tuple[str, ...] = ()
    reanalysed: str | None = None
    given_up: tuple[str, ...] = ()
    dropped: tuple[int, ...] = ()
    looks: tuple[tuple[int, ...], ...] = ()
    most: int = 0
    planned_looks: bool = False
    missing: tuple[str, ...] = ()
    known_before: int = 0

    @property
    def fixed_before(self) -> bool:
        """Whether what verdicts go by was fixed before the first result, and nothing that matters was touched since."""
        touched = any(change.known for change in self.changes)
        return self.recorded is not None and not (touched or self.reanalysed or self.missing or self.known_before)

    @property
    def share(self) -> float | None:
        """The share of the risk that looks after the first get where they were not planned; None where they were."""
        return EXTENSION if self.looks and not self.planned_looks else None


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
    newest: Mapping[str, Any], plans: Sequence[Mapping[str, Any]], runs: Iterable[KnownRun]
) -> StudyRegistration:
    """What a study's plans and results say about when its analysis was fixed.

    Args:
        newest: the plan that is in force.
        plans: every plan on record, the oldest first.
        runs: every run on disk that has a result, whatever plan it belongs to.
    """
    found = list(runs)
    history = _history(newest, plans)
    if not history:
        return StudyRegistration(None, (), dict(newest["compare"]))
    changes = tuple(
        change
        for before, after in itertools.pairwise(history)
        for change in _changes(before, after, _known(after, found))
    )
    planned = [plan for plan in history if not _known(plan, found)] or history[:1]
    registered, own = planned[-1], history[-1]
    reanalysed = own.get("reanalysed")
    compare: dict[str, Any] = dict(newest["compare"])
    overruled: tuple[str, ...] = ()
    if not reanalysed and registered["compare"].get("to") in newest["arms"]:
        overruled = tuple(name for name in COMPARED if compare.get(name) != registered["compare"].get(name))
        compare |= {name: registered["compare"].get(name) for name in COMPARED}
    known = {plan["plan"] for plan in plans} | {newest["plan"]}
    sequential = [plan["until_decided"] for plan in planned if plan.get("until_decided")]
    looks = _looks(history, found, newest)
    most = max(len(_seeds_of(plan)) for plan in history)
    if sequential:
        most = max(most, *sequential)
    elif looks:
        most = max(most, MOST)
    with_results = {(run.arm, run.seed) for run in found}
    return StudyRegistration(
        recorded=str(history[0]["recorded"]),
        changes=changes,
        compare=compare,
        overruled=overruled,
        reanalysed=None if reanalysed is None else str(reanalysed),
        given_up=_given_up(history, newest, found),
        dropped=tuple(sorted({seed for arm, seed in with_results if arm in newest["arms"]} - set(_seeds_of(newest)))),
        looks=looks,
        most=most,
        planned_looks=bool(sequential),
        missing=tuple(sorted({run.plan for run in found if run.plan is not None} - known)),
        known_before=_known(history[0], found),
    )


def _history(newest: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The plans up to the one in force, which is last, also where it was returned to."""
    own = [plan for plan in plans if plan["plan"] == newest["plan"]]
    return [*(plan for plan in plans if plan["plan"] != newest["plan"]), *own] if own else []


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
        **({} if after.get("until_decided") else {"seeds": _seeds_of}),  # looks that were planned are no change
        "metric": lambda plan: plan["task"].get("metric"),
        "data": lambda plan: f"{plan['task'].get('name')}@{str(plan['task'].get('fingerprint'))[:8]}",
        "model": lambda plan: f"{plan['model'].get('name')}@{str(plan['model'].get('identity'))[:8]}",
    }
    for what, part in parts.items():
        if part(before) != part(after):
            yield PlanChange(str(after["recorded"]), what, _text(part(before)), _text(part(after)), known)
    for arm in dict.fromkeys([*before["arms"], *after["arms"]]):
        if arm not in after["arms"]:
            yield PlanChange(str(after["recorded"]), f"arm {arm}", "part of the study", "none of it", known)
        elif arm not in before["arms"]:
            yield PlanChange(str(after["recorded"]), f"arm {arm}", "none of the study", "part of it", known)
        elif _definition(before, arm) != _definition(after, arm):
            changed = ", ".join(_differing(before["arms"][arm], after["arms"][arm]))
            yield PlanChange(str(after["recorded"]), f"{changed} of arm {arm}", *_values(before, after, arm), known)


def _compared_part(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda plan: plan["compare"].get(name)


def _definition(plan: Mapping[str, Any], arm: str) -> tuple[Any, Any]:
    found = plan["arms"][arm]
    return found.get("methods"), found.get("train")


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new = before.get("train") or {}, after.get("train") or {}
    settings = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [*(["methods"] if before.get("methods") != after.get("methods") else []), *settings]


def _values(before: Mapping[str, Any], after: Mapping[str, Any], arm: str) -> tuple[str, str]:
    """The values of what differs, where that is one setting."""
    old, new = before["arms"][arm], after["arms"][arm]
    names = _differing(old, new)
    if names == ["methods"]:
        return _text(_names(old)), _text(_names(new))
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
        return f"{value[0]} to {value[-1]}" if consecutive else ", ".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _whole(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _given_up(
    history: Sequence[Mapping[str, Any]], newest: Mapping[str, Any], runs: Iterable[KnownRun]
) -> tuple[str, ...]:
    """Arms, or earlier forms of an arm, that had results when a later plan no longer had them."""
    found = list(runs)
    with_results = {run.arm for run in found}
    now = [_definition(newest, arm) for arm in newest["arms"]]
    given_up: dict[str, tuple[Any, Any]] = {}
    for before, after in itertools.pairwise(history):
        for arm in before["arms"]:
            definition = _definition(before, arm)
            seen = arm in with_results and _known(after, found)
            if seen and definition not in now and definition not in given_up.values():
                given_up[arm if arm not in given_up else f"{arm} (another form)"] = definition
    return tuple(given_up)


def _looks(
    history: Sequence[Mapping[str, Any]], runs: Iterable[KnownRun], newest: Mapping[str, Any]
) -> tuple[tuple[int, ...], ...]:
    """The seeds that were complete each time when more of them were planned: what anyone could have looked at before."""
    found = {(run.arm, run.seed): run for run in runs}
    looks: list[tuple[int, ...]] = []
    for before, after in itertools.pairwise(history):
        added = set(_seeds_of(after)) - set(_seeds_of(before))
        if not added:
            continue
        arms = [arm for arm in before["arms"] if arm in newest["arms"]]
        complete = tuple(
            seed
            for seed in _seeds_of(before)
            if seed in _seeds_of(newest)
            and arms
            and all(_ended(found.get((arm, seed)), _second(after)) for arm in arms)
        )
        larger = len(complete) > len(looks[-1]) if looks else len(complete) >= FEWEST
        if larger and len(complete) < len(_seeds_of(newest)):
            looks.append(complete)
    return tuple(looks)


def _ended(run: KnownRun | None, second: float) -> bool:
    return run is not None and (run.time is None or run.time < second + 1)


def day(when: str) -> str:
    """A recorded time as people write it: 2026-11-17 06:40 UTC."""
    return when.replace("T", " ")[:16] + " UTC"
