"""The machine of a study's runs: what they share, where they differ, and how busy it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.hardware import readable
from fairtune.analysis.results import LedgerRun
from fairtune.core.numbers import plural

MOMENTARY = ("time", "load", "load_after")
OWN_LOAD = 0.5
"""What a study's own command adds to the load of its workers, which fill all cores."""


def describe_machine(runs: list[LedgerRun]) -> Machine:
    """One description where all runs agree, the differences in words where they do not."""
    found = [(f"{run.arm}/seed-{run.seed}", run.environment) for run in runs if run.begun]
    captured = {name: environment for name, environment in found if environment is not None}
    sampled = {seen.run: seen for run in runs if run.begun and (seen := run.conditions) is not None}
    flat = [_flat(environment) for environment in captured.values()]
    names = list(dict.fromkeys(name for facts in flat for name in facts))
    values = {name: Counter(facts.get(name, "not recorded") for facts in flat) for name in names}
    return Machine(
        facts={name: next(iter(counts)) for name, counts in values.items() if len(counts) == 1},
        differing=tuple(f"{name}: {_counted(counts)}" for name, counts in values.items() if len(counts) > 1),
        load_before=_range([_load(e.get("load")) for e in captured.values()]),
        load_after=_range([_load(e.get("load_after")) for e in captured.values()]),
        busy=tuple(
            reason for name, e in captured.items() if name not in sampled and (reason := _busy(name, e)) is not None
        ),
        shared=tuple(seen.sharing_text for seen in sampled.values() if seen.is_shared),
        slowed=tuple(seen.slowing_text for seen in sampled.values() if seen.is_slowed),
    )


def _flat(environment: dict[str, Any]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for name, value in readable(environment).items():
        if name in MOMENTARY or value is None:
            continue
        if isinstance(value, dict):
            facts.update({f"{name}.{part}": str(inner) for part, inner in value.items() if inner is not None})
        else:
            facts[name] = f"{value / 1e9:.1f} GB" if name == "memory_bytes" else str(value)
    gpus = [str(gpu.get("name")) for gpu in _own_gpus(environment)]
    return {**facts, "gpus": ", ".join(gpus)} if gpus else facts


def _counted(counts: Counter[str]) -> str:
    return "; ".join(f"{value} in {plural(count, 'run')}" for value, count in counts.most_common())


def _load(load: dict[str, Any] | None) -> float | None:
    average = (load or {}).get("load_average")
    return float(average[0]) if average else None


def _range(values: list[float | None]) -> tuple[float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None


def _busy(name: str, environment: dict[str, Any]) -> str | None:
    """Why a run's times are in doubt: more waiting work than cores, or strangers on the GPU, when it began."""
    load, cores = _load(environment.get("load")), (environment.get("cores") or {}).get("logical")
    if load is not None and cores and load > cores + OWN_LOAD:
        return f"{name}: load average {load:.1f} on {cores} cores when it began"
    others = sum(int(gpu.get("other_processes") or 0) for gpu in _own_gpus(environment))
    return f"{name}: {others} other processes on the GPUs when it began" if others else None


def _own_gpus(environment: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that a run could use; earlier versions did not say which, and then it is all of the machine's."""
    return [gpu for gpu in (environment.get("load") or {}).get("gpus") or [] if gpu.get("visible", True)]


@dataclass(frozen=True)
class Machine:
    """Where the runs happened.

    Args:
        facts: what all runs have in common.
        differing: what they do not, in words.
        load_before, load_after: lowest and highest load average over the runs.
        busy: runs that began on a machine that had other work, where nothing was sampled while they ran.
        shared: runs whose device others used while they ran, by its samples.
        slowed: runs whose GPU was slowed down by heat or its power supply.
    """

    facts: dict[str, str]
    differing: tuple[str, ...]
    load_before: tuple[float, float] | None
    load_after: tuple[float, float] | None
    busy: tuple[str, ...]
    shared: tuple[str, ...] = ()
    slowed: tuple[str, ...] = ()
