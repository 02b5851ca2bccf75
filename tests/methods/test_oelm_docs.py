"""The examples of docs/oelm.md run: in a study, in a user's own loop, in Trainer and under PEFT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fairtune.execution.job import make_job
from fairtune.models import attention_layouts as layouts
from fairtune.models.attention import attention_layers
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from fairtune.testing.toy import VOCABULARY
from tests.documented import examples, run_python
from tests.execution.conftest import perform_here

PYTHON, STUDIES = examples("oelm.md", "python"), examples("oelm.md", "yaml")


@pytest.fixture
def run(tiny_model: Path, tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    folders = {"google-bert/bert-base-uncased": tiny_model, "openai-community/gpt2": tiny_gpt2}
    return lambda heading: run_python(PYTHON[heading], folders, f"docs/oelm.md: {heading}")


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    size = len(VOCABULARY)
    config = GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=2, eos_token_id=3)
    GPT2Model(config).save_pretrained(folder)
    return folder


def test_every_arm_of_the_study_trains(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    source = parse_yaml(STUDIES["In a study"]).data
    source["arms"]["upper-layers"]["methods"][0]["orthogonal_qk"]["layers"] = "1-1"  # the tiny model has two
    whole = {**source, "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 1}
    whole["train"] |= {"steps": 2, "batch_size": 4, "max_length": 16, "eval_examples": 10}
    plan = make_plan(load_study(whole))
    assert [run.arm for run in plan.runs] == list(source["arms"])
    for run in plan.runs:
        result = perform_here(make_job(plan, run, tmp_path / "runs"))
        assert result["status"] == "finished", result
        assert (result["frozen"]["tensors"] > 0) == (not run.arm.startswith("baseline"))


def test_the_own_loop(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("In your own loop")
    output = capsys.readouterr().out
    assert "4 of 4 query and key projections changed, 4 frozen" in output
    assert "matrix products allow a speed-up of at most 1.0" in output
    again = type(names["model"]).from_pretrained("my-model").eval()
    names["model"].eval()
    batch = names["batch"]
    torch.testing.assert_close(again(**batch).logits, names["model"](**batch).logits)


def test_trainer(run: Any) -> None:
    names = run("In transformers' `Trainer`")
    assert {n for n, p in names["model"].named_parameters() if not p.requires_grad} == {
        f"transformer.h.{i}.attn.c_attn.qk.{kind}" for i in (0, 1) for kind in ("weight", "bias")
    }


def test_under_peft(run: Any) -> None:
    pytest.importorskip("peft")
    names = run("Under PEFT")
    names["card"].verify(names["model"])


def test_peft_on_the_part_of_a_fused_projection_that_trains(tiny_gpt2: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForSequenceClassification

    from fairtune import orthogonalize_qk

    model = AutoModelForSequenceClassification.from_pretrained(tiny_gpt2, num_labels=2, pad_token_id=0)
    plain = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    card = orthogonalize_qk(model)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", target_modules=["c_attn.v"]))
    trained = [p for p in adapted.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.1)
    ids = torch.arange(5, 25).reshape(2, 10)
    for _ in range(2):
        adapted(input_ids=ids, labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
    card.verify(adapted)
    merged = adapted.merge_and_unload()
    card.verify(merged)
    assert {name: tuple(tensor.shape) for name, tensor in merged.state_dict().items()} == plain


def test_an_architecture_of_ones_own(run: Any) -> None:
    try:
        names = run("Architectures")
        assert len(attention_layers(names["model"])) == 2
        assert len(names["card"].frozen) == 4
    finally:
        layouts._own.clear()


def test_no_example_is_left_out() -> None:
    tested = {"In your own loop", "In transformers' `Trainer`", "Under PEFT", "Architectures"}
    assert set(examples("oelm.md", "python")) == tested
    assert set(STUDIES) == {"In a study"}
