"""Finished runs made in an instant: the real start, every trainable weight moved a little, saved as a run saves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from fairtune.execution.start import build_start, plain_model, save_adapter
from fairtune.execution.study_files import record_plan
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import close_run
from fairtune.methods.registry import parse_method_use
from fairtune.models.tokenizers import load_tokenizer
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study

SEED = 3
LABELS = ("neg", "pos")


def study_of(model: Path, task: Any, arms: dict[str, list[Any]]) -> dict[str, Any]:
    """A study of a few steps; each arm is a list of methods."""
    return {
        "study": "toy",
        "task": task.as_study(),
        "model": str(model),
        "train": {"steps": 3, "batch_size": 8, "lr": 1e-3, "max_length": 32, "eval_examples": 20},
        "seeds": [SEED],
        "arms": {name: {"methods": methods} for name, methods in arms.items()},
        "compare": {"to": next(iter(arms))},
        "execution": {"devices": "cpu"},
    }


def make_run(runs: Path, model: Path, task: Any, methods: list[Any], arm: str = "arm", **others: Any) -> RunFolder:
    """A finished run of one arm in a runs folder; its study may have other fields too."""
    plan = make_plan(load_study(study_of(model, task, {arm: methods}) | others))
    record_plan(plan, runs / "toy")
    job = plan.runs[0].at(runs)
    job.run.write_plan(job.as_json())
    uses = [parse_method_use(use) for use in job.settings.methods]
    start = build_start(job.model, uses, job.settings.seed, LABELS)
    generator = torch.Generator().manual_seed(5)
    for parameter in start.model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
    save_adapter(start.model, start.methods, job.run.adapter)
    plain_model(start.model, start.methods).save_pretrained(job.run.model)
    load_tokenizer(model).save_pretrained(job.run.model)
    close_run(job.run, job.key, {"status": "finished", "signature": job.signature})
    return job.run
