"""A ledger made by hand, without training, with predictions of known accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from tests.planned import planned_arms
from tests.report.made_card import made_card
from tests.sealed import close_all

from fairtune.analysis.results import Results, load_results
from fairtune.core.files import write_json
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.studies import write_study

EXAMPLES = 400
STUDY = "made"
QK = [{"orthogonal_qk": {"init": "headwise", "freeze": True, "std": 0.02}}]
TRAIN = {"lr": 2e-5, "epochs": 2.0, "batch_size": 32}


@dataclass
class ArmSpec:
    """An arm of a made study.

    Args:
        right: number of right test predictions by seed; None leaves the run waiting, a text is why it failed.
        learner: of a simple baseline, whose runs have no steps.
    """

    right: Sequence[int | str | None]
    lr: float = 2e-5
    methods: list[Any] = field(default_factory=list)
    step_seconds: float = 0.5
    learner: str | None = None


@dataclass
class MadeLedger:
    """A study on disk that tests can change."""

    runs: Path
    arms: dict[str, ArmSpec]

    def folder(self, arm: str, seed: int) -> RunFolder:
        return run_folder(self.runs, STUDY, arm, seed)

    def predict(self, arm: str, seed: int, right: int) -> None:
        """Store predictions of which so many are right; which ones depends on arm and seed."""
        labels = np.arange(EXAMPLES) % 2
        learner = self.arms[arm].learner if arm in self.arms else None
        drawn = 0 if learner else seed  # what draws no random numbers is the same for every seed
        wrong = np.random.default_rng([drawn, crc32(arm.encode())]).permutation(EXAMPLES)[: EXAMPLES - right]
        predicted = labels.copy()
        predicted[wrong] = 1 - predicted[wrong]
        if learner == "majority":
            predicted[:] = 0
        scores = np.eye(2, dtype=np.float32)[predicted]
        ids = tuple(f"t{i}" for i in range(EXAMPLES))
        write_predictions(self.folder(arm, seed).predictions, {"test": Predictions(ids, labels, scores)})

    def results(self) -> Results:
        """Of what the files hold now, also where a test changed them."""
        close_all(self.runs / STUDY)
        return load_results(self.runs, STUDY)


def usual_ledger(runs: Path) -> MadeLedger:
    """Five arms, three seeds: a confounded arm with its control, a failure, an arm that has not begun."""
    arms = {
        "baseline": ArmSpec([336, 338, 334]),
        "baseline-fast": ArmSpec([331, 336, 324], lr=1e-4),
        "oelm-freeze": ArmSpec([256, 262, 251], lr=1e-4, methods=QK, step_seconds=0.44),
        "focal": ArmSpec([343, "the loss is nan at step 3 of 20", 335], methods=[{"focal": {"gamma": 2.0}}]),
        "later": ArmSpec([None, None, None], methods=[{"fgm": {}}]),
    }
    return make_study(runs, arms, margin="1.5%")


def make_study(
    runs: Path,
    arms: dict[str, ArmSpec],
    margin: float | str | None = None,
    source: str = "made by hand",
    metric: str = "accuracy",
    claims: Sequence[dict[str, Any]] = (),
    **compare: Any,
) -> MadeLedger:
    made, seeds = MadeLedger(runs, arms), range(max(len(spec.right) for spec in arms.values()))
    planned = [
        _planned(position, arm, seed, arms[arm])
        for position, (seed, arm) in enumerate(
            (seed, arm) for seed in seeds for arm in arms if seed < len(arms[arm].right)
        )
    ]
    base = next(iter(arms))
    plan = {
        "fairtune": "0.1.0",
        "protocol": 1,
        "plan": "0123456789abcdef",
        "study": STUDY,
        "task": {
            "name": "made-task", "kind": "classify", "metric": metric, "labels": ["no", "yes"],
            "rows": {"train": 320, "validation": 80, "test": EXAMPLES}, "source": source, "fingerprint": "f" * 64,
        },
        "model": {"name": "minilm", "identity": "5" * 64, "folder": "/secret/place", "hub_id": None, "revision": None},
        "order": "crossover",
        "seeds": list(seeds),
        "arms": planned_arms(
            {
                arm: (spec.methods, {"examples": None} if spec.learner else {**TRAIN, "lr": spec.lr})
                for arm, spec in arms.items()
            },
            base,
            {arm: spec.learner for arm, spec in arms.items() if spec.learner},
        ),
        "compare": {"to": base, "margin": margin, "confidence": 0.95, **compare},
        **({"claims": list(claims)} if claims else {}),
        "execution": {"devices": ["cpu"], "checkpoint_every": "5min", "save_model": False},
        "runs": planned,
        "differences": [
            {"arm": arm, "text": f"{arm}: lr is {spec.lr:g}, {base} has {arms[base].lr:g}"}
            for arm, spec in arms.items()
            if spec.lr != arms[base].lr
        ],
    }  # fmt: skip
    (runs / STUDY).mkdir(parents=True)
    write_study(runs / STUDY, plan)
    for run in planned:
        _record(made, run, arms[run["arm"]])
    close_all(runs / STUDY)
    return made


def _planned(position: int, arm: str, seed: int, spec: ArmSpec) -> dict[str, Any]:
    return {
        "position": position, "block": seed, "arm": arm, "seed": seed, "key": f"{arm}-{seed}", "steps": 20,
        "settings": {"train": {**TRAIN, "lr": spec.lr}, "methods": spec.methods, "seed": seed},
        "signature": f"fairtune:0.1.0|protocol:1|arm:{arm}|seed:{seed}|run:{arm}-{seed}",
    }  # fmt: skip


def _record(made: MadeLedger, run: dict[str, Any], spec: ArmSpec) -> None:
    right = spec.right[run["seed"]]
    if right is None:
        return
    folder = made.folder(run["arm"], run["seed"])
    folder.write_plan({"plan": "0123456789abcdef", "study": STUDY, **run})
    write_json(folder.environment, environment(run["position"]))
    if isinstance(right, str):
        write_json(folder.result, {"status": "failed", "signature": run["signature"], "reason": right, "kind": "run"})
        return
    made.predict(run["arm"], run["seed"], right)
    if spec.learner:
        _record_learner(folder, run, spec.learner, right)
        return
    log = EventLog(folder.events)
    for step in range(1, 21):
        seconds = spec.step_seconds * (1 + step % 2 / 10)
        log.write("step", step, step=step, loss=0.7 - 0.02 * step + 0.01 * run["seed"], seconds=seconds)
        if step % 5 == 0:
            score = right / EXAMPLES - 0.1 + step / 200
            log.write("evaluation", step, split="validation", step=step, accuracy=score)
    log.close()
    card = made_card(frozen=any("orthogonal_qk" in method for method in spec.methods), changed=bool(spec.methods))
    write_json(folder.card, card)
    seconds = spec.step_seconds * (1 + run["seed"] / 100)
    write_json(
        folder.result,
        {
            "status": "finished", "signature": run["signature"], "metric": "accuracy", "steps": 20,
            "metrics": {"test": {"accuracy": right / EXAMPLES}},
            "seconds": {"data": 0.1, "step": 20 * seconds, "validation": 2.0, "test": 1.0, "total": 3.1 + 20 * seconds},
            "step_seconds": {"n": 20, "median": seconds}, "parameters": card["parameters"],
            "frozen": {"tensors": len(card["frozen"]), "sha256": "a" * 64, "unchanged": True},
            "memory": {"peak_bytes": 1_500_000_000, "kind": "resident in the process"},
        },
    )  # fmt: skip


def _record_learner(folder: RunFolder, run: dict[str, Any], name: str, right: int) -> None:
    found = {
        "name": name, "examples": 320, "features": 384, "parameters": 770, "chosen": {"C": 0.01},
        "tried": [{"C": 0.01, "score": 0.8, "loss": 0.4}, {"C": 0.1, "score": 0.7, "loss": 0.5}],
    }  # fmt: skip
    write_json(folder.card, {"learner": found, "notes": []})
    score = 0.5 if name == "majority" else right / EXAMPLES
    write_json(
        folder.result,
        {
            "status": "finished", "signature": run["signature"], "metric": "accuracy", "learner": found, "steps": 0,
            "metrics": {"test": {"accuracy": score}}, "seconds": {"data": 1.0, "fit": 0.5, "score": 0.1, "total": 1.6},
        },
    )  # fmt: skip


def environment(position: int) -> dict[str, Any]:
    return {
        "time": "2026-11-15T19:57:03Z", "fairtune": "0.1.0", "python": "3.11.7", "cpu": "a CPU",
        "cores": {"physical": 2, "logical": 2}, "memory_bytes": 25_000_000_000, "device": "cpu",
        "packages": {"torch": "2.13.0", "numpy": "2.4.6"}, "git": None, "torch": {"threads": 2, "cuda": None},
        "load": {"time": 1.0, "load_average": [0.25 + position / 10, 0.1, 0.1], "gpus": []},
        "load_after": {"time": 2.0, "load_average": [1.9, 0.1, 0.1], "gpus": []},
    }  # fmt: skip
