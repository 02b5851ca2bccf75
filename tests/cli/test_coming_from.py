"""docs/coming-from.md: everything that it names on our side is there and accepts what the page writes."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from tests.documented import DOCS, examples
from tests.execution.made_texts import make_model
from tests.report.made_ledger import QK, STUDY, ArmSpec, make_study
from tests.report.made_timing import time_ledger
from tests.tasks.made_mirror import make_everything, make_task, make_titles
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

import fairtune
from fairtune.claims.published import load_claims
from fairtune.cli.app import app
from fairtune.ledger.folders import RunFolder
from fairtune.methods.arms import named_arms
from fairtune.methods.registry import registered
from fairtune.report.plots import PLOTS
from fairtune.report.result_summary import result_summary
from fairtune.report.writer import make_content, write_report
from fairtune.settings.sections import Train
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.study.suite_file import load_suite
from fairtune.study.yaml_tree import parse_yaml
from fairtune.tasks.definitions import DEFINITIONS
from fairtune.tasks.titles import task as title_task
from fairtune.testing.toy import make_tiny_model

ROOT = DOCS.parent
FILES = ("run", "plan", "time")
PAGE = (DOCS / "coming-from.md").read_text(encoding="utf-8")
ROWS = [row.split(" | ", 1)[1] for row in PAGE.partition("## What is not here")[0].splitlines() if row.startswith("| ")]
RIGHT = list(dict.fromkeys(text for row in ROWS for text in re.findall(r"`([^`]+)`", row.replace("\\|", "|"))))
STUDIES = sorted((ROOT / "studies").glob("*.yaml"))
TASKS = {
    "target_loss": {"task": "tinystories", "model": "gpt-mini", "tokenizer": {"train": 4000}},
    "metric": {"task": "titles"},
}
GPT = {"model": "gpt-medium-512", "tokenizer": "openai-community/gpt2", "task": "tinystories"}


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """The verb of a command, and the options that it takes."""
    _, verb, *words = shlex.split(text)
    found = typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined, arg-type]
    assert found is not None, verb
    if verb == "data":
        verb, *words = words
        found = found.get_command(None, verb)
    return verb, found.make_context(verb, words).params


def command(text: str) -> None:
    """The verb takes these options; of a study, its file has the profile, fields and arms."""
    verb, given = parse(text)
    if verb in FILES and given.get("file"):
        study = load_study(ROOT / given["file"], given["overrides"] or (), given["profile"])
        assert set((given["arms"] or "").split(",") if given["arms"] else []) <= set(study.arms)
    elif verb == "suite":
        assert load_suite(ROOT / given["file"])
    elif verb == "claims":
        assert load_claims(given["only"])


StudyKey = tuple[str, str | None, tuple[str, ...]]


def planned() -> dict[StudyKey, list[str]]:
    """The study files that commands name, each with profile and overrides, and the arms that they choose."""
    found: dict[StudyKey, list[str]] = {}
    for text in RIGHT:
        if re.match(rf"fairtune ({'|'.join(FILES)}) studies/", text):
            given = parse(text)[1]
            key = (given["file"], given["profile"], tuple(given["overrides"] or ()))
            found.setdefault(key, []).append(given["arms"] or "")
    return found


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A mirror of every task, an encoder with 512 positions and a tokenizer for GPT; all are tiny."""
    folder = tmp_path_factory.mktemp("everything")
    mirror = make_titles(make_everything(folder / "mirror", documents=200))
    for task in (one for one in DEFINITIONS if one.name in ("sst2", "mrpc", "cola")):
        make_task(mirror, task, 910)  # more than the largest map of BP-SOM has cells
    model = make_tiny_model(folder / "bert")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 512}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTUNE_MIRROR", str(mirror))
        patch.setattr(title_task, "ROWS", 500)
        yield {"model": model, "tokenizer": make_model(folder / "gpt")}


@pytest.mark.parametrize(("key", "arms"), planned().items(), ids=lambda one: "-".join(map(str, one)))
def test_every_study_is_planned(key: StudyKey, arms: list[str], everything: dict[str, Path]) -> None:
    """With another model and few examples, since the published ones are not on every machine."""
    file, profile, given = key
    study, model = load_study(ROOT / file, given, profile), everything["model"]
    overrides = [f"arms.{arm}.model={model}" for arm, own in study.arms.items() if own.model is not None]
    overrides.append(f"model={model}" if study.tokenizer is None else f"tokenizer={everything['tokenizer']}")
    plan = make_plan(load_study(ROOT / file, [*given, *overrides], profile), force=True)
    assert plan.runs
    for chosen in (names.split(",") for names in arms if names):
        assert set(chosen) <= set(plan.choose(chosen))


OFFLINE = re.compile(r"fairtune (time --check|claims|status|inspect gpt|data lengths)")


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("text", [text for text in RIGHT if OFFLINE.match(text)])
def test_commands_that_need_no_runs_answer(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, shlex.split(text)[1:])
    assert answer.exit_code == 0, answer.output


def fragment(text: str) -> None:
    """A field of a study, of its training or of an arm; or a method with its settings."""
    ((key, value),) = parse_yaml(text.replace("module:function", "textwrap:dedent")).data.items()
    study: dict[str, Any] = {"study": "s", "task": "sst2", "model": "minilm", "arms": {"baseline": {}}}
    if key in Train.model_fields:
        study["train"] = {key: value}
    elif key in registered():
        study["arms"]["tried"] = {"methods": [{key: value}]}
    elif key == "methods":
        study["arms"]["tried"] = {"methods": value}
    else:
        extra = GPT if key in ("model", "tokenizer") else TASKS.get(key, {})
        extra = {**extra, **(TASKS["target_loss"] if "target_loss" in text else {})}
        study |= {**extra, key: value}
        study["arms"] |= {"bpsom": {}} if key == "claims" else {}
    assert load_study(study)


def test_the_page_names_something() -> None:
    assert len(RIGHT) > 120


@pytest.mark.parametrize("text", [text for text in RIGHT if text.startswith("fairtune ")])
def test_every_command_is_accepted(text: str) -> None:
    command(text)


@pytest.mark.parametrize("text", [text for text in RIGHT if re.match(r"[a-z_]+: ", text)])
def test_every_setting_is_accepted(text: str) -> None:
    fragment(text)


def test_every_expression_runs(tiny_model: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(tiny_model)
    texts = [f"{word} {n}" for n in range(12) for word in ("good", "bad")]
    names: dict[str, Any] = {
        "fairtune": fairtune, "model": model, "weight": torch.randn(8, 8), "num_heads": 2, "texts": texts,
        "labels": ["yes", "no"] * 12, "results": None,
    }  # fmt: skip
    found = [text for text in RIGHT if text.startswith("fairtune.") and "load_results" not in text]
    assert len(found) >= 5
    for text in found:
        ready = text.replace('"minilm", ', f"{str(tiny_model)!r}, epochs=1, progress=False, ")
        assert eval(ready, names) is not None, text


def test_every_file_and_key_is_written(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([300, 304]), "oelm": ArmSpec([310, 311], methods=QK)})
    time_ledger(made, {"baseline": 0.5, "oelm": 0.48}, frozen=("oelm",))
    results = made.results()
    write_report(results)
    run = RunFolder(tmp_path)
    own = {path.name for path in (run.events, run.timing, run.result, run.environment, run.model)}
    for text in (text for text in RIGHT if text.startswith("runs/")):
        if "seed-N/" in text:
            assert Path(text).name in own, text
        else:
            assert (tmp_path / text.replace("STUDY", STUDY)).exists(), text
    content = result_summary(make_content(results), results)
    keys = [
        text for text in RIGHT if re.match(r"(environment|performance|timing|parameter_efficiency|comparison)\.", text)
    ]
    assert len(keys) >= 20
    for text in keys:
        place: Any = content
        for part in text.replace("ARM", "oelm").split("."):
            assert part in place, text
            place = place[part]


def test_nothing_else_is_on_the_right() -> None:
    """Arms, study files, figures: by what is shipped."""
    arms = {*named_arms(), *(arm for file in STUDIES for arm in load_study(file).arms)}
    plots = {f'results.plot("{name}")' for name in PLOTS}
    files = {f"studies/{file.name}" for file in STUDIES}
    rest = [
        text
        for text in RIGHT
        if not re.match(
            r"fairtune[ .]|[a-z_]+: |runs/|(environment|performance|timing|parameter_efficiency|comparison)\.", text
        )
    ]
    assert set(rest) <= arms | plots | files


def test_the_recommended_configuration_is_accepted(tiny_model: Path) -> None:
    texts, labels = [f"title {n}" for n in range(24)], ["yes", "no"] * 12
    (shell,) = re.findall(r"```\n(fairtune train .*?)```", PAGE, re.DOTALL)
    command(shell.replace("\\\n", " "))
    code = examples("coming-from.md", "python")["The recommended configuration"]
    names: dict[str, Any] = {"fairtune": fairtune}
    exec(code.replace('"allenai/scibert_scivocab_uncased"', repr(str(tiny_model))), names)
    names["clf"].set_params(epochs=1, progress=False).fit(texts, labels)
    assert ast.literal_eval(repr(names["clf"].methods[0])) == {"focal": {"gamma": 2, "alpha": [0.25, 0.25]}}
