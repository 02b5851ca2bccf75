"""Where a fitted classifier comes from and what was measured of it: plain data, all of which is saved with it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from fairtune.classifier.calibration import Calibration
from fairtune.classifier.labels import Classes, Values
from fairtune.classifier.settings import Settings
from fairtune.core import __version__
from fairtune.core.cache import key_of
from fairtune.models.sources import ModelSource
from fairtune.settings.learners import LEARNERS
from fairtune.study.plan import PROTOCOL
from fairtune.tasks.task import Split


@dataclass(frozen=True)
class Provenance:
    """How a classifier came to be, and what was measured of it.

    Args:
        labels: the classes' values, in the order of their numbers.
        width: texts of an example, 1 or 2.
        names: of the columns that they were in, if any.
        settings: everything that decides the weights, and nothing else.
        data: examples of each class and split, how the validation split came about, and a sha256 of it all.
        history: one row per evaluation; without validation, one row per epoch.
        step: the one whose weights it has, of `steps` that were planned.
        epoch: the pass over the training examples in which that step is, from 1.
        partial: whether training was interrupted.
        validation: figures of merit with their intervals; None without validation.
        notes: what a reader of its figures must know.
        label: the column that the labels were in, if it had a name.
        test: figures on examples that had no part in it, the `data` they are of, and what to know; None where none were given.
        baselines: what simple learners reach on the same rows; None where they were not asked.
    """

    labels: Values
    width: int
    names: list[str] | None
    max_length: int
    settings: dict[str, Any]
    data: dict[str, Any]
    history: list[dict[str, Any]]
    step: int
    steps: int
    epoch: int
    partial: bool
    validation: list[dict[str, Any]] | None
    calibration: Calibration | None
    environment: dict[str, Any]
    notes: list[str]
    signature: str
    label: str | None = None
    test: dict[str, Any] | None = None
    baselines: dict[str, Any] | None = None

    @property
    def classes(self) -> Classes:
        return Classes(self.labels)

    @property
    def temperature(self) -> float:
        return 1.0 if self.calibration is None else self.calibration.temperature

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Provenance:
        value = {"baselines": None, **value}  # which older folders do not have
        found = cls(**{field.name: value[field.name] for field in fields(cls)})
        calibration = value["calibration"]
        return found if calibration is None else replace(found, calibration=Calibration(**calibration))


def settings_of(settings: Settings, source: ModelSource, data: dict[str, Any]) -> dict[str, Any]:
    """What decides the weights, as a run's plan has it."""
    train = settings.train
    if settings.head is not None:
        return {
            "protocol": PROTOCOL,
            "data": data["fingerprint"],
            "model": {"name": source.name, "identity": source.identity},
            "train": {"max_length": train.max_length},
            "methods": [],
            "learner": LEARNERS[settings.head].identity(),
            "metric": settings.metric,
            "calibrate": settings.calibrate,
            "seed": settings.seed,
        }
    unused = {"tokens", "examples", "eval_examples"} | train.unstated
    return {
        "protocol": PROTOCOL,
        "data": data["fingerprint"],
        "model": {"name": source.name, "identity": source.identity},
        "train": train.model_dump(mode="json", exclude=unused),
        "methods": [use.as_json() for use in settings.methods],
        "metric": settings.metric,
        "calibrate": settings.calibrate,
        "seed": settings.seed,
    }


def signature_of(settings: dict[str, Any], partial: bool) -> str:
    """One line that says what was fitted, as a run's signature does."""
    model = settings["model"]
    methods = "+".join(name for use in settings["methods"] for name in use) or "none"
    learner = f"|head:{settings['learner']['name']}" if "learner" in settings else ""
    return (
        f"fairtune:{__version__}|protocol:{settings['protocol']}|data:{settings['data'][:8]}"
        f"|model:{model['name']}@{model['identity'][:8]}|methods:{methods}{learner}|seed:{settings['seed']}|fit:{key_of(settings)[:16]}"
        + ("|partial" if partial else "")
    )


def data_of(classes: Classes, splits: dict[str, Split], how: str) -> dict[str, Any]:
    """Examples by split and class, and a sha256 of labels, texts and their order.

    Args:
        how: the validation split came about.
    """
    digest = hashlib.sha256("\0".join([type(classes.values[0]).__name__, *classes.names]).encode())
    counted: dict[str, Any] = {}
    for name, split in splits.items():
        digest.update(f"\1{name}\1{len(split)}".encode())
        split.add_to(digest)
        numbers = split.labels.tolist()
        counted[name] = {label: numbers.count(number) for number, label in enumerate(classes.names)}
    return {"counts": counted, "held_out": how, "fingerprint": digest.hexdigest()}
