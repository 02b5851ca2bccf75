"""A ledger of language models made by hand, without training, with losses that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from tests.planned import planned_arms
from tests.report.made_card import made_card
from tests.report.made_ledger import QK, STUDY, environment
from tests.sealed import close_all

from fairtune.analysis.results import Results, load_results
from fairtune.core.files import write_json
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.predictions import TextScores, write_predictions
from fairtune.ledger.studies import write_study

DOCUMENTS, STEPS = 60, 200
PROMPTS = ("Once upon a time", "Tom and Mia went to the")
TRAIN = {"lr": 1e-3, "steps": STEPS, "batch_size": 16, "max_length": 128, "attention": None}


@dataclass
class TextArm:
    """An arm of a made study.

    Args:
        loss: on the test split by seed; None leaves the run waiting, a text is why it failed.
        later: how much higher the loss of the last weights is.
        says: what it goes on with.
    """

    loss: Sequence[float | str | None]
    lr: float = 1e-3
    methods: list[Any] = field(default_factory=list)
    later: float = 0.01
    says: str = ", there was a little girl named Lily. She loved to play outside in the park."


@dataclass
class MadeTextLedger:
    """A study on disk that tests can change."""

    runs: Path
    arms: dict[str, TextArm]

    def folder(self, arm: str, seed: int) -> RunFolder:
        return run_folder(self.runs, STUDY, arm, seed)

    def score(self, arm: str, seed: int, loss: float, later: float = 0.01) -> None:
        """Store sums by document whose loss per token is exactly this."""
        splits = {"validation": loss + 0.01, "test": loss, "final": loss + later}
        generator = np.random.default_rng([seed, crc32(arm.encode())])
        write_predictions(
            self.folder(arm, seed).predictions, {name: _scores(generator, level) for name, level in splits.items()}
        )

    def results(self) -> Results:
        """Of what the files hold now, also where a test changed them."""
        close_all(self.runs / STUDY)
        return load_results(self.runs, STUDY)


def _scores(generator: np.random.Generator, loss: float) -> TextScores:
    tokens = 200 + np.arange(DOCUMENTS) % 7 * 20
    nll = tokens * (loss + 0.2 * np.sin(np.arange(DOCUMENTS)) + 0.01 * generator.standard_normal(DOCUMENTS))
    nll += tokens * (loss - nll.sum() / tokens.sum())
    ids = tuple(f"d{i}" for i in range(DOCUMENTS))
    return TextScores(ids, nll, tokens, 4 * tokens, tokens * 3 // 4, tokens // 2)


def usual_text_ledger(runs: Path) -> MadeTextLedger:
    """Eight arms, three seeds, as the shipped study has: each method at two rates, one that fails, one that diverges."""
    arms = {
        "baseline": TextArm([1.45, 1.46, 1.44]),
        "baseline-1e-3": TextArm([1.41, 1.42, 1.40], lr=3e-3),
        "oelm-freeze": TextArm([1.60, 1.62, 1.61], methods=QK),
        "oelm-freeze-1e-3": TextArm([1.55, 1.56, 1.57], lr=3e-3, methods=QK),
        "oelm-random": TextArm([1.452, 1.463, 1.441], methods=QK),
        "oelm-random-1e-3": TextArm([1.49, "the loss is nan at step 30", 1.47], lr=3e-3, methods=QK),
        "oelm-global": TextArm([2.7, 3.9, 2.9], methods=QK),
        "oelm-global-1e-3": TextArm([7.1, 7.3, 6.9], lr=3e-3, methods=QK),
    }
    return make_text_study(runs, arms, margin="5%", target_loss=1.5)


def make_text_study(
    runs: Path, arms: dict[str, TextArm], margin: float | str | None = "5%", target_loss: float | None = None
) -> MadeTextLedger:
    made, seeds = MadeTextLedger(runs, arms), range(max(len(spec.loss) for spec in arms.values()))
    planned = [
        _planned(position, arm, seed, arms[arm])
        for position, (seed, arm) in enumerate((seed, arm) for seed in seeds for arm in arms)
    ]
    base = next(iter(arms))
    counts = {
        name: {
            "documents": size,
            "tokens": 250 * size,
            "bytes": 1000 * size,
            "words": 180 * size,
            "cut": name == "train",
        }
        for name, size in (("train", 2000), ("validation", 50), ("test", DOCUMENTS))
    }
    plan = {
        "fairtune": "0.1.0", "protocol": 2, "plan": "0123456789abcdef", "study": STUDY,
        "task": {
            "name": "stories", "kind": "language_model", "metric": "perplexity", "labels": [],
            "rows": {name: found["documents"] for name, found in counts.items()}, "source": "made by hand",
            "fingerprint": "f" * 64, "hashes": dict.fromkeys(counts, "a" * 32), "counts": counts,
        },
        "model": {
            "name": "gpt-mini(vocab_size=2000)", "identity": "5" * 64, "folder": None, "hub_id": None, "revision": None,
            "positions": 128, "preset": {"preset": "gpt-mini", "vocab_size": 2000}, "vocabulary": 2000,
        },
        "tokenizer": {"name": "bpe-2000", "identity": "6" * 64, "folder": "/secret/place", "vocabulary": 2000},
        "order": "crossover", "seeds": list(seeds),
        "arms": planned_arms({arm: (spec.methods, {**TRAIN, "lr": spec.lr}) for arm, spec in arms.items()}, base),
        "compare": {"to": base, "margin": margin, "confidence": 0.95, "target_loss": target_loss},
        "execution": {"devices": ["cpu"], "checkpoint_every": "5min", "save_model": False},
        "runs": planned,
        "differences": [
            {"arm": arm, "text": f"{arm}: lr is {spec.lr:g}, {base} has {arms[base].lr:g}"}
            for arm, spec in arms.items()
            if spec.lr != arms[base].lr
        ],
        "notes": [], "lengths": ["max_length: blocks of 128 tokens, the model's context"],
    }  # fmt: skip
    (runs / STUDY).mkdir(parents=True)
    write_study(runs / STUDY, plan)
    for run in planned:
        _record(made, run, arms[run["arm"]])
    close_all(runs / STUDY)
    return made


def _planned(position: int, arm: str, seed: int, spec: TextArm) -> dict[str, Any]:
    return {
        "position": position, "block": seed, "arm": arm, "seed": seed, "key": f"{arm}-{seed}", "steps": STEPS,
        "settings": {"train": {**TRAIN, "lr": spec.lr}, "methods": spec.methods, "seed": seed},
        "signature": f"fairtune:0.1.0|protocol:2|arm:{arm}|seed:{seed}|run:{arm}-{seed}",
    }  # fmt: skip


def _record(made: MadeTextLedger, run: dict[str, Any], spec: TextArm) -> None:
    loss = spec.loss[run["seed"]]
    if loss is None:
        return
    folder = made.folder(run["arm"], run["seed"])
    folder.write_plan({"plan": "0123456789abcdef", "study": STUDY, **run})
    write_json(folder.environment, environment(run["position"]))
    if isinstance(loss, str):
        write_json(folder.result, {"status": "failed", "signature": run["signature"], "reason": loss, "kind": "run"})
        return
    made.score(run["arm"], run["seed"], loss, spec.later)
    log = EventLog(folder.events)
    for step in range(1, STEPS + 1):
        level = min(loss, 20.0) + 6 * float(np.exp(-step / 25))
        log.write("step", step, step=step, loss=level + 0.05 * np.sin(step), seconds=0.5)
        if step % 20 == 0:
            log.write("evaluation", step, split="validation", step=step, loss=level, perplexity=float(np.exp(level)))
    log.close()
    card = made_card(frozen=bool(spec.methods), changed=bool(spec.methods))
    write_json(folder.card, card)
    write_json(folder.samples, [{"prompt": prompt, "continuation": spec.says} for prompt in PROMPTS])
    write_json(
        folder.result,
        {
            "status": "finished", "signature": run["signature"], "metric": "perplexity", "metrics": {"test": {}},
            "tokens": STEPS * 2048, "seconds": {"data": 0.1, "step": 100.0, "validation": 9.0, "total": 120.0},
            "step_seconds": {"n": STEPS, "median": 0.5}, "parameters": card["parameters"],
            "frozen": {"tensors": len(card["frozen"]), "sha256": "a" * 64, "unchanged": True},
            "memory": {"peak_bytes": 1_500_000_000, "kind": "resident in the process"},
        },
    )  # fmt: skip
