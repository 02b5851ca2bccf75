"""`peft` in a study file: the library's own names and fields, checked against its config classes while the study is read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairtune.core.errors import ModelError
from fairtune.methods.peft import INFRASTRUCTURE, UNFIT_TYPES, PeftConfig, _fields, adapter_types
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from tests.warm import light_run

peft = pytest.importorskip("peft")


def study_with(settings: Any) -> dict[str, Any]:
    arm = {"methods": [{"peft": settings}]}
    return {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, "x": arm}}


def read(settings: Any) -> PeftConfig:
    config = load_study(study_with(settings)).methods("x")[0].config
    assert isinstance(config, PeftConfig)
    return config


def test_every_adapter_type_of_the_library_is_offered_or_refused_with_a_reason() -> None:
    theirs = {str(getattr(name, "value", name)).lower() for name in peft.PEFT_TYPE_TO_CONFIG_MAPPING}
    assert set(adapter_types()) | set(UNFIT_TYPES) >= theirs
    for name in adapter_types():
        assert _fields(name)
        assert not set(_fields(name)) & INFRASTRUCTURE


@pytest.mark.parametrize(
    "settings",
    [
        {"type": "lora", "r": 8},
        {"type": "lora", "lora_dropout": 0.1, "target_modules": ["query", "value"], "bias": "all"},
        {"type": "lora", "target_modules": "all-linear", "init_lora_weights": "pissa_niter_4"},
        {"type": "lora", "rank_pattern": {"query": 4}},
        {"type": "ia3"},
        {"type": "vera", "r": 64},
        {"type": "oft", "oft_block_size": 8},
        {"type": "ln_tuning", "target_modules": ["LayerNorm"]},
        {"type": "adalora", "total_step": 100, "tinit": 10, "tfinal": 20},
        {"type": "prompt_tuning", "num_virtual_tokens": 3, "prompt_tuning_init": "RANDOM"},
    ],
    ids=str,
)
def test_what_is_given_is_kept_and_survives_its_json(settings: dict[str, Any]) -> None:
    use = parse_method_use({"peft": settings})
    assert use.as_json() == {"peft": settings}, "defaults of the library are no part of a run's settings"
    assert parse_method_use(use.as_json()) == use
    assert read(settings) == use.config


def test_a_name_alone_is_lora_and_dora_is_lora_with_its_switch() -> None:
    assert parse_method_use("peft").as_json() == {"peft": {"type": "lora"}}
    assert read({"type": "dora", "r": 4}) == read({"type": "lora", "use_dora": True, "r": 4})
    assert read({"lora_dropout": 0}).settings == {"lora_dropout": 0.0}, "one number, one spelling"


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ({"type": "lorra"}, ".type", "Did you mean 'lora'?"),
        ({"lora_alfa": 3}, ".lora_alfa", "unknown field of LoraConfig 'lora_alfa'; allowed: task_type, r,"),
        ({"type": "dora", "use_dora": False}, ".use_dora", "unknown field"),
        ({"r": "8"}, ".r", "found '8'; allowed: a whole number. Lora attention dimension"),
        ({"lora_dropout": float("nan")}, ".lora_dropout", "allowed: a number"),
        ({"bias": "lora_onyl"}, ".bias", "allowed: none, all or lora_only. Did you mean 'lora_only'?"),
        ({"target_modules": [1]}, ".target_modules", "each a text"),
        ({"init_lora_weights": "pissa_niter_99999999"}, ".init_lora_weights", "found 'pissa_niter_99999999'"),
        ({"layers_pattern": "layer"}, ".layers_pattern", "the PEFT library refuses this: When `layers_pattern` is"),
        ({"task_type": "SEQ"}, "", "the PEFT library refuses this: Invalid task type: 'SEQ'"),
        ({"type": "poly"}, ".type", "a study cannot train poly: it needs a task id in every batch"),
        ({"init_lora_weights": "eva"}, ".init_lora_weights", "a study cannot use 'eva' here: this start is computed"),
        ({"megatron_config": {"a": 1}}, ".megatron_config", "the library would import the module"),
        ({"type": "prompt_tuning", "tokenizer_name_or_path": "/etc"}, ".tokenizer_name_or_path", "whether to run its code"),
        (3, "", "found 3; allowed: a mapping"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, settings: Any, place: str, words: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(study_with(settings), sort_keys=False))
    with pytest.raises(StudyError) as caught:
        load_study(file)
    lines = file.read_text().splitlines()
    (problem,) = caught.value.problems
    assert problem.path == f"arms.x.methods[0].peft{place}"
    assert words in problem.message
    line = int(problem.where.rpartition(":")[2])
    assert (place.strip(".") or "peft") in lines[line - 1]


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(StudyError) as caught:
        read({"r": "x", "lora_alfa": 3, "bias": 1})
    assert len(caught.value.problems) == 3


def test_without_the_library_the_way_to_get_it_is_reported(monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    method = create_method(parse_method_use("peft"), seed=0)
    adapter_types.cache_clear()
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(StudyError, match=r"not installed; run `pip install 'fairtune\[peft\]'`"):
        read({"type": "lora"})
    with pytest.raises(ModelError, match=r"pip install 'fairtune\[peft\]'"):
        method.prepare(AutoModelForSequenceClassification.from_pretrained(tiny_model))


def test_a_study_without_adapters_imports_neither_torch_nor_the_library(tmp_path: Path) -> None:
    file, wrong = tmp_path / "s.yaml", tmp_path / "wrong.yaml"
    file.write_text("study: s\ntask: t\nmodel: m\narms: {baseline: {}, x: {methods: [bitfit]}}\n")
    wrong.write_text("study: s\ntask: t\nmodel: m\narms: {baseline: {}, x: {methods: [bitfti]}}\n")
    verbs = [["--help"], ["schema"], ["methods"], ["validate", str(file)], ["validate", str(wrong)]]
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"for words in {verbs!r}:\n"
        "    try: app(words)\n"
        "    except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers', 'peft') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60)
    assert done.stdout.strip().endswith("[]"), done.stdout[-300:] + done.stderr
