"""What a study costs in operations: the formula agrees with torch's own count, and hours follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from fairtune.claims.published import load_claims
from fairtune.claims.trial_costs import find_cost
from fairtune.models.flops import count_flops
from fairtune.models.operations import find_config, model_sizes, operations_per_token
from fairtune.study.compute import GPUS, Compute, plan_compute
from fairtune.study.plan import find_tuning_cost, make_plan
from fairtune.study.study_file import load_study

SMALL = {"vocab_size": 400, "num_hidden_layers": 2}


@pytest.mark.parametrize(
    "name", ["google-bert/bert-base-uncased", "FacebookAI/roberta-base", "microsoft/deberta-v3-base"]
)
def test_operations_of_an_encoder_are_those_that_torch_counts(name: str) -> None:
    config, _ = find_config(name, **SMALL)
    tokens = torch.randint(5, 400, (2, 48))
    batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": torch.zeros(2, dtype=torch.long)}
    found = count_flops(AutoModelForSequenceClassification.from_config(config), batch)
    sizes = {**(model_sizes(name) or {}), **SMALL}
    assert operations_per_token(sizes, 48, 2) == pytest.approx(found.total / found.tokens, rel=0.03)


@pytest.mark.parametrize("name", ["gpt-mini", "llama-mini"])
def test_operations_of_a_language_model_include_its_head(name: str) -> None:
    config, _ = find_config(name, vocab_size=4000)
    tokens = torch.randint(5, 400, (2, 48))
    found = count_flops(AutoModelForCausalLM.from_config(config), {"input_ids": tokens, "labels": tokens})
    assert operations_per_token(model_sizes(name), 48, 2, True, 4000) == pytest.approx(
        found.total / found.tokens, rel=0.03
    )


def test_an_unknown_model_has_none() -> None:
    assert operations_per_token(model_sizes("somebody/some-model"), 128, 32) is None


def test_every_open_trial_has_its_gpu_hours() -> None:
    trials = [trial for file in load_claims().values() for claim in file.claims for trial in claim.trials]
    costs = [find_cost(trial) for trial in trials if "titles" in trial.file]
    assert costs
    for cost in costs:
        assert set(cost.as_json()["gpu_hours"]) == set(GPUS)


def test_a_plan_counts_its_runs_and_its_trials(tiny_model: Path, tiny_task: Any) -> None:
    source = {
        "study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 3, "train": {"steps": 10, "max_length": 16},
        "arms": {"baseline": {}, "fgm": {"methods": ["fgm"]}, "majority": {}},
    }  # fmt: skip
    plain = make_plan(load_study(source))
    found = plan_compute(plain, None)
    assert found is not None
    one = operations_per_token(model_sizes(str(tiny_model), str(tiny_model)), 16, 32)
    assert one is not None
    assert found.operations == pytest.approx(3 * 10 * 32 * 16 * one * 3), "a step with fgm is two"
    tuned = make_plan(load_study({**source, "tune": {"space": {"lr": [1e-5, 1e-4]}, "trials": 2, "seeds": 1}}))
    more = plan_compute(tuned, find_tuning_cost(tuned))
    assert more is not None
    assert more.operations == pytest.approx(found.operations * (3 + 2) / 3)


def test_hours_follow_from_operations() -> None:
    cost = Compute(0.3 * 312e12 * 3600)
    assert cost.gpu_hours["A100"]["16-bit"] == pytest.approx(1)
    assert cost.gpu_hours["A100"]["fp32"] == pytest.approx(16)
    assert len(str(cost).splitlines()) == 2
