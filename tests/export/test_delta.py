"""Deltas: only what training changed is stored, and the whole comes back bit for bit or not at all."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairtune.models.last_layer import narrow_last_layer
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from fairtune import export_delta, restore_delta
from fairtune.execution.job import make_job
from fairtune.execution.study_files import record_plan
from fairtune.export.delta import Exported
from fairtune.export.tensors import named_tensors, same_bits
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import read_predictions
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.models.transformers_files import own_memory
from fairtune.settings.file_task import FileTask
from fairtune.study.plan import PROTOCOL, make_plan
from fairtune.study.study_file import load_study
from fairtune.tasks import load_task
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.tokens.encoded_splits import encode_task
from fairtune.testing.toy import VOCABULARY, make_tokenizer
from fairtune.training.classification import Classification
from tests.execution.conftest import perform_here
from tests.execution.made_runs import SEED, change_recipe, make_run, study_of
from tests.models import architectures

ARMS: dict[str, list[Any]] = {
    "baseline": [],
    "oelm-freeze": [{"orthogonal_qk": {"init": "headwise"}}],
    "oelm-random": [{"orthogonal_qk": {"init": "normal"}}],
    "freeze-pretrained": [{"orthogonal_qk": {"init": "keep"}}],
}


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2 keeps Q, K and V in one weight."""
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    sizes = {"vocab_size": len(VOCABULARY), "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        GPT2Model(GPT2Config(**sizes, pad_token_id=0, bos_token_id=2, eos_token_id=3)).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def kept_run(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("kept") / "runs", tiny_model, tiny_task, ARMS["oelm-freeze"])


@pytest.fixture(scope="module")
def kept_delta(kept_run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(export_delta(kept_run.path, tmp_path_factory.mktemp("exported") / "delta").out)


@pytest.fixture
def run(kept_run: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy that a test may change."""
    study = kept_run.path.parents[1]
    shutil.copytree(study, tmp_path / "runs" / study.name)
    return RunFolder(tmp_path / "runs" / kept_run.path.relative_to(study.parent))


@pytest.fixture
def delta(kept_delta: Path, tmp_path: Path) -> Path:
    """Likewise."""
    return shutil.copytree(kept_delta, tmp_path / "delta")


def same_files(restored: Path, model: Path) -> bool:
    """The same tensors, bit for bit, and the same other files."""
    ours, theirs = load_file(restored / "model.safetensors"), load_file(model / "model.safetensors")
    files = {path.name for path in model.iterdir()}
    return (
        ours.keys() == theirs.keys()
        and all(same_bits(ours[name], theirs[name]) for name in ours)
        and files == {path.name for path in restored.iterdir()}
        and all((restored / name).read_bytes() == (model / name).read_bytes() for name in files)
    )


def test_real_runs_come_back_with_the_scores_that_were_recorded(
    tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    source = study_of(tiny_model, tiny_task, ARMS)
    plan, runs = make_plan(load_study(source)), tmp_path / "runs"
    record_plan(plan, runs / "toy")
    task = load_task(FileTask.model_validate(source["task"]))
    test = fixed_sample(task.splits["test"], source["train"]["eval_examples"])
    encoded = encode_task(task, load_tokenizer(tiny_model), 32, {"test": source["train"]["eval_examples"]})
    objective = Classification(encoded, task.metric)
    shares = {}
    for planned in plan.runs:
        job = make_job(plan, planned, runs)
        assert perform_here(job)["status"] == "finished"
        done = export_delta(f"toy/{planned.arm}/seed-{SEED}", tmp_path / planned.arm, runs)
        shares[planned.arm] = done.share
        stored = load_file(tmp_path / planned.arm / "delta.safetensors")
        frozen = [name for name in stored if ".query." in name or ".key." in name]
        assert len(frozen) == (8 if planned.arm == "baseline" else 0), "2 layers x Q and K x weight and bias"
        assert done.rebuilt_otherwise == ()

        back = tmp_path / f"{planned.arm}-whole"
        restore_delta(done.out, back, model=str(tiny_model))
        assert same_files(back, job.run.model)
        network = AutoModelForSequenceClassification.from_pretrained(back)
        assert network.config.id2label == {0: "neg", 1: "pos"}
        assert AutoTokenizer.from_pretrained(back)("a good film")["input_ids"]
        recorded = read_predictions(job.run.predictions, "test")
        assert recorded.ids == test.ids
        own_memory(network)  # as runs compute it: in memory of their own,
        assert narrow_last_layer(network).computed_for, "and the last layer for one token"
        scores = objective.evaluate(network, "test", torch.device("cpu"), [], lambda: None).arrays["scores"]
        assert np.array_equal(scores.view(np.int32), recorded.scores.view(np.int32)), "the same logits, bit for bit"
    assert shares["oelm-freeze"] < 0.95 < shares["baseline"]


def test_a_fused_weight_is_stored_only_in_the_part_that_trains(tiny_gpt2: Path, tiny_task: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", tiny_gpt2, tiny_task, ["orthogonal_qk"])
    done = export_delta(run.path, tmp_path / "delta")
    stored = load_file(tmp_path / "delta" / "delta.safetensors")
    cut = {name: tuple(tensor.shape) for name, tensor in stored.items() if "h.0.attn.c_attn" in name}
    name = "transformer.h.0.attn.c_attn.v"
    assert cut == {f"{name}.weight": (32, 32), f"{name}.bias": (32,)}, "a third of 32 x 96"
    assert done.tensors - done.stored == 4, "weight and bias of qk, in two layers"
    restore_delta(done.out, tmp_path / "whole", str(tiny_gpt2))
    assert same_files(tmp_path / "whole", run.model)


@pytest.mark.parametrize("name", ["modernbert", "falcon-by-head", "llama", "albert", "deberta-v3", "distilbert"])
def test_other_architectures_come_back_too(name: str, tiny_task: Any, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    architectures.build(name).save_pretrained(checkpoint)
    make_tokenizer().save_pretrained(checkpoint)
    run = make_run(tmp_path / "runs", checkpoint, tiny_task, ["orthogonal_qk"])
    done = export_delta(run.path, tmp_path / "delta")
    assert 0 < done.stored < done.tensors
    restore_delta(done.out, tmp_path / "whole", str(checkpoint))
    assert same_files(tmp_path / "whole", run.model)


def test_adapters_are_folded_in_on_both_sides(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    run = make_run(tmp_path / "runs", tiny_model, tiny_task, [{"peft": {"type": "lora"}}])
    done = export_delta(run.path, tmp_path / "delta")
    stored = load_file(tmp_path / "delta" / "delta.safetensors")
    assert {name.rpartition("layer.0.attention.")[2] for name in stored if "layer.0." in name} == {
        "self.query.weight",
        "self.value.weight",
    }
    restore_delta(done.out, tmp_path / "whole", str(tiny_model))
    assert same_files(tmp_path / "whole", run.model)


def test_the_recipe_says_what_is_needed_and_names_no_path(delta: Path, run: RunFolder, tmp_path: Path) -> None:
    text = (delta / "recipe.json").read_text()
    recipe, plan = json.loads(text), json.loads(run.plan.read_text())
    assert recipe["settings"] == plan["settings"]
    assert (recipe["signature"], recipe["protocol"], recipe["labels"]) == (plan["signature"], PROTOCOL, ["neg", "pos"])
    assert recipe["checkpoint"]["identity"] == plan["settings"]["model"]["identity"]
    assert recipe["model"].keys() == load_file(run.model / "model.safetensors").keys()
    assert recipe["made_with"]["packages"]["torch"] == torch.__version__
    assert str(tmp_path) not in text
    assert str(Path.home()) not in text
    assert {path.name for path in delta.iterdir()} == {"recipe.json", "delta.safetensors"}


def test_the_users_random_numbers_go_on_as_if_nothing_had_been(run: RunFolder, tmp_path: Path) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    export_delta(run.path, tmp_path / "delta")
    assert draw() == expected


def test_an_export_from_a_machine_that_rounds_otherwise_stores_more_and_says_so(
    run: RunFolder, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.linalg.qr
    monkeypatch.setattr(torch.linalg, "qr", lambda *a, **k: tuple(part * (1 + 1e-7) for part in exact(*a, **k)))
    done = export_delta(run.path, tmp_path / "delta")
    assert len(done.rebuilt_otherwise) == 4
    monkeypatch.undo()
    restore_delta(tmp_path / "delta", tmp_path / "whole", str(tiny_model))
    assert same_files(tmp_path / "whole", run.model)


def test_a_copy_of_an_embedded_model_is_known_by_its_content(delta: Path, tiny_model: Path, tmp_path: Path) -> None:
    recipe = json.loads((delta / "recipe.json").read_text())
    known = {**recipe["checkpoint"], "name": "minilm", "identity": "0" * 64}
    change_recipe(delta, checkpoint=known)
    assert known["sha256"] == find_model(str(tiny_model)).identity
    restore_delta(delta, tmp_path / "whole", str(tiny_model))


def test_bits_decide_what_is_the_same() -> None:
    nan, zero = torch.tensor([float("nan")]), torch.tensor(0.0)
    assert same_bits(nan, nan.clone())
    assert not same_bits(zero, -zero)
    assert not same_bits(zero, zero.double())


def test_buffers_that_are_saved_count_as_tensors() -> None:
    module = torch.nn.BatchNorm1d(3)
    module.register_buffer("passing", torch.zeros(1), persistent=False)
    assert set(named_tensors(torch.nn.Sequential(module))) == {
        f"0.{name}" for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    }


def test_the_share_is_of_the_whole_models_size() -> None:
    assert Exported("r", "o", 1, 2, 400, 100, ()).as_json()["share"] == 0.25
