"""Each method works alone on a plain transformers model: the examples of its page run, and the page's study is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairtune.methods.registry import parse_method_use
from fairtune.models import attention_layouts as layouts
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from fairtune.testing.toy import VOCABULARY
from tests.documented import DOCS, examples, run_python

PAGES = ("adversarial", "augment", "bpsom", "ema", "layerwise_lr", "losses", "oelm", "peft")
PYTHON = [(page, heading) for page in PAGES for heading in examples(f"{page}.md", "python")]
OWN_LOOP, TRAINER = "In your own loop", "In transformers' `Trainer`"


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    GPT2Model(GPT2Config(vocab_size=len(VOCABULARY), **sizes, bos_token_id=2, eos_token_id=3)).save_pretrained(folder)
    return folder


@pytest.fixture
def run(tiny_model: Path, tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layouts, "_own", type(layouts._own)(layouts._own))
    torch.manual_seed(0)
    folders = {
        "google-bert/bert-base-uncased": tiny_model, "minilm": tiny_model, "openai-community/gpt2": tiny_gpt2,
    }  # fmt: skip
    return lambda page, heading: run_python(
        examples(f"{page}.md", "python")[heading], folders, f"docs/{page}.md: {heading}"
    )


def test_every_page_but_that_of_adapters_has_an_own_loop_and_a_trainer() -> None:
    for page in PAGES:
        assert {OWN_LOOP} | ({TRAINER} if page != "peft" else set()) <= {h for p, h in PYTHON if p == page}


@pytest.mark.parametrize("page", PAGES)
def test_every_arm_of_the_study_is_read_and_acts(page: str) -> None:
    study = load_study(parse_yaml(next(iter(examples(f"{page}.md", "yaml").values()))).data)
    assert any(study.methods(arm) for arm in study.arms)
    for arm in study.arms:
        for use in study.methods(arm):
            assert use.config.data_problem(1000, ["negative", "positive"]) is None


@pytest.mark.parametrize(("page", "heading"), PYTHON)
def test_the_example_runs(run: Any, page: str, heading: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(page, heading)
    output = capsys.readouterr().out
    if "trainer" in names:
        assert names["trainer"].state.global_step > 0
    if page == "ema" and heading != "Cost":
        ema, saved = names["ema"], type(names["model"]).from_pretrained("my-model")
        assert ema.updates == 3
        assert all(torch.equal(p, ema.averages[name]) for name, p in saved.named_parameters())
    if (page, heading) == ("layerwise_lr", OWN_LOOP):
        assert "embeddings       1.81e-05" in output
    if (page, heading) == ("oelm", OWN_LOOP):
        assert "4 of 4 query and key projections changed, 4 frozen" in output
        again, batch = type(names["model"]).from_pretrained("my-model").eval(), names["batch"]
        torch.testing.assert_close(again(**batch).logits, names["model"].eval()(**batch).logits)
    if (page, heading) == ("oelm", "Under PEFT"):
        names["card"].verify(names["model"])
    if (page, heading) == ("bpsom", OWN_LOOP):
        head, encoded, labels = names["head"], names["encoded"], names["labels"]
        assert (head.eval()(encoded).argmax(1) == labels).float().mean() > 0.9
        assert output.startswith("1 SOM use 0%"), "there are no labels before the first pass"
    if (page, heading) == ("bpsom", TRAINER):
        assert 1 <= names["model"].head.units < 16
    if (page, heading) == ("peft", OWN_LOOP):
        trained = [name for name, p in names["model"].named_parameters() if p.requires_grad]
        assert all(name.endswith(".bias") or name == "classifier.weight" for name in trained)


def test_the_costs_of_adversarial_training_are_what_the_methods_expect() -> None:
    text = (DOCS / "adversarial.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:: (\{[^`]*\}))?` \|[^|]*\| ([^|]*) \| ([^|]*) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 6
    for name, settings, formula, figure in rows:
        method = parse_yaml(f"{name}: {settings}").data if settings else name
        value = eval(formula.replace("2/3 ", "2/3*"), {"K": 3})
        assert parse_method_use(method).config.step_factor == pytest.approx(value)
        assert not figure.strip() or float(figure) == pytest.approx(value, abs=0.01)
