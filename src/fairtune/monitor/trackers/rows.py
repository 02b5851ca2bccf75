"""What trackers are sent of a study: one row per arm with its figures so far, and a row per run, all from the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtune.core.files import read_json, read_sealed
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.scan import RunRow
from fairtune.ledger.seals import DAMAGED, FINISHED
from fairtune.ledger.studies import TIME, read_plans
from fairtune.monitor.study_view import ArmView, StudyView

Scalar = str | int | float | bool
FIGURES = ("mean", "low", "high", "pairs", "difference", "difference_low", "difference_high")
"""Of an arm, besides how many runs have finished."""
FORM = 1
"""Changes when rows are sent in another form, so that they are sent anew."""


@dataclass(frozen=True)
class TrackedPoint:
    """Values of some curves at one optimizer step, with the time at which the run wrote them."""

    step: int
    time: float
    values: dict[str, float]


@dataclass(frozen=True)
class TrackedRow:
    """A row of a tracker: a run, or an arm.

    Args:
        name: `arm/seed-n`, or the arm's name.
        seed: None for an arm.
        key: of the run's settings; of an arm, its name.
        state: of a run, as `fairtune status` shows it; of an arm, `finished` once all its runs have ended.
        params: settings and methods, which never change.
        tags: texts that may change: the signature, the reason of a failure, the verdict.
        figures: test metrics of a run; n, mean, interval and difference of an arm.
        step: where the figures stand: the last optimizer step, or the number of the study's runs that have ended.
        began, ended: times, by the clock of who wrote them.
    """

    name: str
    arm: str
    seed: int | None
    key: str
    state: str
    params: dict[str, Scalar] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    step: int = 0
    began: float | None = None
    ended: float | None = None

    @property
    def mark(self) -> str:
        """Changes whenever the row says something else; times alone are nothing new."""
        return digest(asdict(replace(self, began=None, ended=None)))


@dataclass(frozen=True)
class TrackedStudy:
    """A study as a whole.

    Args:
        identity: of this very ledger: another execution of the same plan elsewhere has another.
        lines: what there is to say of it, a sentence or two each.
    """

    study: str
    identity: str
    plan: str
    lines: tuple[str, ...]

    @property
    def mark(self) -> str:
        return digest(asdict(self))


def digest(value: Any) -> str:
    """A short hash of plain data."""
    text = json.dumps([FORM, value], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def identity_of(home: Path, plan: Mapping[str, Any]) -> str:
    """What tells this ledger of a study from another one, by when its first plan was recorded."""
    first = next((str(found.get("recorded")) for found in read_plans(home)), TIME)
    return digest([plan.get("study"), first])[:12]


def tracked_study(view: StudyView, plan: Mapping[str, Any], identity: str) -> TrackedStudy:
    lines = [view.about, view.verdict.opening or view.verdict.problem]
    if view.verdict.peeking:
        lines.append(f"{view.verdict.peeking}. {view.verdict.note}")
    return TrackedStudy(view.study, identity, str(plan.get("plan")), tuple(line for line in lines if line))


def tracked_arm(view: StudyView, arm: ArmView, plan: Mapping[str, Any], identity: str, ended: int) -> TrackedRow:
    """The row of an arm.

    Args:
        ended: runs of the study that have.
    """
    settings = plan["arms"].get(arm.arm)
    peeking = view.verdict.peeking
    tags = {
        "fairtune.study": view.study,
        "fairtune.ledger": identity,
        "fairtune.plan": str(plan.get("plan")),
        "fairtune.arm": arm.arm,
        "metric": str(view.metric),
        "against": arm.against or "",
        "runs": ", ".join(f"{count} {state}" for state, count in arm.counts.items() if count),
        "verdict": _verdict(arm, peeking),
        "peeking": peeking,
    }
    found = {name: getattr(arm, name) for name in FIGURES}
    over = sum(arm.counts.get(state, 0) for state in ("waiting", "running", "interrupted")) == 0
    return TrackedRow(
        arm.arm,
        arm.arm,
        None,
        arm.arm,
        "finished" if over else "running",
        {"arm": arm.arm, **_params(settings if isinstance(settings, Mapping) else {})},
        {name: text for name, text in tags.items() if text},
        {"n": float(arm.n if arm.mean is None else arm.counted), "planned": float(arm.planned), **_numbers(found)},
        ended,
    )


def _verdict(arm: ArmView, peeking: str) -> str:
    if arm.against is None:
        return "reference"
    by = f" by {arm.by}" if arm.word and arm.by else ""
    return f"{arm.word or 'no verdict yet'}{by}{f' ({peeking})' if peeking else ''}"


def tracked_run(study: str, identity: str, row: RunRow, planned: Mapping[str, Any], folder: RunFolder) -> TrackedRow:
    """The row of a run that has begun, without its curves."""
    result = (read_json(folder.result) or {}) if row.status == FINISHED else {}
    splits = result.get("metrics")
    tests = splits.get("test") if isinstance(splits, dict) else None
    settings = planned.get("settings")
    tags = {
        "fairtune.study": study,
        "fairtune.ledger": identity,
        "fairtune.run": f"{row.arm}/seed-{row.seed}",
        "fairtune.key": str(row.key),
        "fairtune.plan": _plan_of(folder),
        "fairtune.signature": str(row.signature or planned.get("signature") or ""),
        "state": row.status,
        "reason": row.reason or "",
    }
    figures = {f"test/{name}": value for name, value in _numbers(tests or {}).items()}
    if row.seconds is not None and row.status != DAMAGED:
        figures["seconds"] = row.seconds
    return TrackedRow(
        f"{row.arm}/seed-{row.seed}",
        row.arm,
        row.seed,
        str(row.key),
        row.status,
        {"arm": row.arm, "seed": row.seed, **_params(settings if isinstance(settings, Mapping) else {})},
        {name: text for name, text in tags.items() if text},
        figures,
        int(planned.get("steps") or 0),
    )


def _plan_of(folder: RunFolder) -> str:
    try:
        return str(read_sealed(folder.plan).get("plan") or "")
    except (OSError, ValueError):
        return ""


def _params(settings: Mapping[str, Any]) -> dict[str, Scalar]:
    """Settings as flat pairs: `train.lr`, `methods`."""
    found: dict[str, Scalar] = {}
    for section in ("task", "model", "tokenizer"):
        if isinstance(inner := settings.get(section), Mapping) and inner.get("name"):
            found[section] = str(inner["name"])
    train = settings.get("train")
    for name, value in train.items() if isinstance(train, Mapping) else ():
        if value is not None:
            found[f"train.{name}"] = value if isinstance(value, str | int | float | bool) else json.dumps(value)
    if settings.get("learner"):
        learner = settings["learner"]
        found["learner"] = learner if isinstance(learner, str) else json.dumps(learner)
    methods = settings.get("methods")
    names = [name for use in methods or () for name in (use if isinstance(use, Mapping) else [use])]
    found["methods"] = ", ".join(map(str, names)) or "none"
    for use in methods or ():
        for name, own in use.items() if isinstance(use, Mapping) else ():
            found[f"methods.{name}"] = json.dumps(own)
    return found


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(name): float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    }
