"""Studies beside each other: what differs between them, and the figures of their arms where the task is the same.

Each study keeps its own verdicts. Between studies none is made: their runs had other seeds, hours or hardware, nobody planned the
comparison, and no control of one is a control of the other. Where the task itself differs, figures do not even stand side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.fact_differences import FactDifference, differing_facts, flat_facts, method_facts
from fairtune.analysis.hardware import hardware_of
from fairtune.analysis.results import Results
from fairtune.analysis.study_verdict import REFERENCE
from fairtune.core.errors import FairtuneError
from fairtune.settings.metrics import METRICS, title_of

NOT_JUDGED = (
    "No difference between studies is judged: their runs had other seeds, hours or hardware, and were not planned as one "
    "comparison. To judge it, put the arms into one study."
)


@dataclass(frozen=True)
class StudyBeside:
    """One of the studies.

    Args:
        label: its name, or its path where two have the same name.
        statuses: number of planned runs by status.
        cautions: what to mind before its figures are believed, notes left out.
    """

    label: str
    task: str
    model: str
    metric: str
    reference: str
    seeds: tuple[int, ...]
    confidence: float
    statuses: dict[str, int]
    fixed_before: bool
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class ArmFigure:
    """An arm in its own study: its mean with the interval, and the verdict that it has there.

    Args:
        word: the verdict, or `reference`.
        difference, difference_low, difference_high: to the arm that it is compared with, alone.
    """

    n: int
    planned: int
    mean: float
    low: float | None
    high: float | None
    word: str
    against: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    base: float | None = None


@dataclass(frozen=True)
class ArmBeside:
    """Arms of one name.

    Args:
        figures: by study, None where it has no such arm.
        settings: methods and settings in which the studies that have it differ.
    """

    arm: str
    figures: tuple[ArmFigure | None, ...]
    settings: tuple[FactDifference, ...]


@dataclass(frozen=True)
class StudiesBeside:
    """Studies side by side.

    Args:
        blocking: differences of the task; where there are any, there are no arms here.
        differing: further differences, which a reader has to mind.
        arms: those of several studies first.
    """

    studies: tuple[StudyBeside, ...]
    blocking: tuple[FactDifference, ...]
    differing: tuple[FactDifference, ...]
    arms: tuple[ArmBeside, ...]
    note: str = NOT_JUDGED

    @property
    def metric(self) -> str:
        return self.studies[0].metric

    @property
    def comparable(self) -> bool:
        return not self.blocking


def compare_studies(studies: Sequence[Results]) -> StudiesBeside:
    """Two studies or more beside each other.

    Raises:
        FairtuneError: there is only one, or one of them twice.
    """
    folders = [results.folder.resolve() for results in studies]
    if len(folders) < 2 or len(set(folders)) < len(folders):
        twice = "the same study twice" if len(folders) > 1 else "one study only"
        raise FairtuneError(f"this is {twice}; name two different studies, or use `fairtune report` for one.")
    labels = _labels(studies)
    blocking = differing_facts([_task_facts(results) for results in studies])
    if blocking:
        blocking = [*differing_facts([_data_facts(results) for results in studies]), *blocking]
    return StudiesBeside(
        tuple(_study(results, label) for results, label in zip(studies, labels, strict=True)),
        tuple(blocking),
        tuple(differing_facts([_study_facts(results) for results in studies])),
        () if blocking else tuple(_arms(studies)),
    )


def _labels(studies: Sequence[Results]) -> list[str]:
    """Names, or as much of each path as tells them apart."""
    parts = [results.folder.resolve().parts for results in studies]
    names = [results.study for results in studies]
    longest = max(len(one) for one in parts)
    for length in range(1, longest + 1):
        if len(set(names)) == len(names):
            break
        names = ["/".join(one[-(length + 1) :]).replace("//", "/") for one in parts]
    return names


def _task_facts(results: Results) -> dict[str, Any]:
    """What has to be the same before two figures may stand side by side."""
    plan = results.plan
    task = plan["task"]
    scored = {str(arm["train"]["eval_examples"]) for arm in plan["arms"].values() if "eval_examples" in arm["train"]}
    facts = {
        "data (fingerprint)": task.get("fingerprint"),
        "kind of task": task.get("kind"),
        "labels": ", ".join(map(str, task.get("labels") or ())) or None,
        "metric": title_of(results.metric),
        "scored examples": ", ".join(sorted(scored)).replace("None", "all") or "all",
        "decision line": results.registration.threshold,
    }
    if results.metric in METRICS and METRICS[results.metric].of_tokens:
        facts["tokenizer"] = (plan.get("tokenizer") or plan["model"]).get("name")
    return facts


def _data_facts(results: Results) -> dict[str, Any]:
    """What other data are other in; the same data may have another name elsewhere."""
    task = results.plan["task"]
    splits = {f"{split} split": found for split, found in (task.get("hashes") or {}).items()}
    rows = {f"{split} rows": found for split, found in (task.get("rows") or {}).items()}
    return {"task": task.get("name"), **splits, **rows}


def _study_facts(results: Results) -> dict[str, Any]:
    """What else a reader has to know of a difference."""
    plan, compare = results.plan, results.registration.compare
    machines = {_machine(run.environment) for run in results.runs if run.begun}
    tuned = (plan.get("tuning") or {}).get("fields")
    return {
        "model": plan["model"]["name"],
        "model (identity)": plan["model"].get("identity"),
        "protocol": plan["protocol"],
        "fairtune": plan["fairtune"],
        "seeds": _seeds(plan["seeds"]),
        "order": plan["order"],
        "reference": compare["to"],
        "margin": compare.get("margin"),
        "confidence": compare["confidence"],
        "tuned settings": ", ".join(tuned) if tuned else "none",
        "hardware": "; ".join(sorted(machine for machine in machines if machine)) or None,
        "source of the data": plan["task"].get("source"),
        **{f"all arms: {name}": value for name, value in _common(plan["arms"]).items()},
    }


def _common(arms: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of all trained arms of a study, where they share them."""
    trains = [flat_facts(arm["train"]) for arm in arms.values() if "learner" not in arm]
    names = dict.fromkeys(name for own in trains for name in own)
    shared = {name: all(own.get(name) == trains[0].get(name) for own in trains) for name in names}
    return {name: trains[0].get(name) if shared[name] else "differs between arms" for name in names}


def _machine(environment: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}: {value}" for name, value in hardware_of(environment) or ())


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _study(results: Results, label: str) -> StudyBeside:
    return StudyBeside(
        label=label,
        task=str(results.plan["task"]["name"]),
        model=str(results.plan["model"]["name"]),
        metric=results.metric,
        reference=results.reference,
        seeds=tuple(results.plan["seeds"]),
        confidence=results.confidence,
        statuses=dict(Counter(run.status for run in results.runs)),
        fixed_before=results.registration.fixed_before,
        cautions=tuple(str(caution) for caution in results.cautions if caution.grade != "note"),
    )


def _arms(studies: Sequence[Results]) -> list[ArmBeside]:
    names = dict.fromkeys(arm for results in studies for arm in results.arms)
    found = [_arm(studies, arm) for arm in names]
    return sorted(found, key=lambda one: sum(figure is None for figure in one.figures))


def _arm(studies: Sequence[Results], arm: str) -> ArmBeside:
    figures = tuple(_figure(results, arm) if arm in results.plan["arms"] else None for results in studies)
    own = [_arm_facts(results.plan["arms"][arm]) for results in studies if arm in results.plan["arms"]]
    return ArmBeside(arm, figures, tuple(differing_facts(own)) if len(own) == len(studies) else ())


def _arm_facts(arm: Mapping[str, Any]) -> dict[str, Any]:
    learner = {"learner": arm["learner"]} if "learner" in arm else {}
    return {**learner, **method_facts(arm["methods"]), **flat_facts(arm["train"])}


def _figure(results: Results, arm: str) -> ArmFigure:
    planned = sum(run.arm == arm for run in results.runs)
    found = results.comparison(arm)
    if found is None:
        own = results.summary(arm)
        return ArmFigure(own.n, planned, own.mean, own.low, own.high, REFERENCE)
    both = [{run.seed for run in results.finished(one)} for one in (found.arm, found.reference)]
    own = results.summary(arm, seeds=both[0] & both[1] if found.found.n else None)
    low, high = found.alone
    return ArmFigure(
        own.n, planned, own.mean, own.low, own.high, found.verdict.word, found.reference, found.difference, low, high,
        found.means[1],
    )  # fmt: skip
