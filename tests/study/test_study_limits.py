"""Every field ends somewhere: what no machine could do is refused when the study is read, with what is allowed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.methods.registry import registered
from fairtune.settings.sections import Train
from fairtune.settings.values import (
    LARGEST_SEED,
    MOST_ARMS,
    MOST_RUNS,
)
from fairtune.study.plan import make_plan
from fairtune.study.problems import MOST_SHOWN, StudyError
from fairtune.study.study_file import check_file, load_study

BASE: dict[str, Any] = {"study": "s", "task": "movie-reviews", "model": "minilm", "arms": {"baseline": None}}
TEXT: dict[str, Any] = {"task": "tinystories", "tokenizer": {"train": 8000}}


def method(name: str, **settings: Any) -> dict[str, Any]:
    return {"arms": {"baseline": None, "x": {"methods": [{name: settings}]}}}


def refusal(change: dict[str, Any], overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(StudyError) as caught:
        load_study({**BASE, **change}, overrides)
    (problem,) = caught.value.problems
    return f"{problem.path}: {problem.message}"


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("lr", math.inf, "a number above 0"),
        ("lr", 10**400, "a number above 0"),
        ("epochs", 1e9, " 100,000"),
        ("eval_examples", "30", "a whole number"),
        ("tokens", 10**20, " 1,000,000,000,000,000"),
        ("tokens", "9999999999B", "of at most 1000000B"),
        ("max_length", 10**9, " 1,000,000"),
    ],
)
@pytest.mark.parametrize("place", ["train", "arm"])
def test_a_training_setting_beyond_reason_is_reported_with_its_limit(
    place: str, field: str, value: Any, allowed: str
) -> None:
    change = {"train": {field: value}} if place == "train" else {"arms": {"baseline": {field: value}}}
    message = refusal(change)
    assert message.startswith(f"{'train' if place == 'train' else 'arms.baseline'}.{field}: found ")
    assert allowed in message


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([2**63], "from 0 to 4,294,967,295"),
        ([LARGEST_SEED + 1], " 4,294,967,295"),
        (10**9, "from 1 to 1,000"),
        (list(range(1001)), "a list of at most 1,000 different entries"),
    ],
)
def test_seeds_are_what_every_library_takes(seeds: Any, words: str) -> None:
    assert words in refusal({"seeds": seeds})


def test_the_largest_seed_is_taken_by_everything_that_gets_it() -> None:
    import sqlite3

    import numpy as np
    import torch

    (seed,) = load_study({**BASE, "seeds": [LARGEST_SEED]}).seeds
    np.random.RandomState(seed)
    torch.Generator().manual_seed(seed)
    assert sqlite3.connect(":memory:").execute("select ?", (seed,)).fetchone() == (seed,)
    assert float(seed) == seed == json.loads(json.dumps(float(seed)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"study": "a" * 101}, "study: found 'a.* 101 characters; allowed: at most 100"),
        ({"study": "a\n"}, "letters"),
        ({"arms": {"baseline": {}, "b" * 101: {}}}, "at most 100"),
        ({"arms": {"baseline": {}, "Baseline": {}}}, "differs from 'baseline' only in upper and lower case"),
        ({"arms": {"baseline": {}, "a\x1b": {}}}, r"found 'a\x1b'; allowed: letters"),
        ({"profiles": {"p" * 101: {}}}, "at most 100"),
        ({"task": {"name": "n" * 101, "train": "a.csv"}}, "at most 100"),
        ({"task": {"train": "x" * 300}}, "each name in it at most 255"),
        ({"task": {"train": "a.csv", "label": "x" * 1001}}, "at most 1,000"),
        ({"task": {"train": "\ud800.csv"}}, "found '\\ud800.csv'; allowed: a file or a folder"),
        ({"model": "é" * 200}, "400 bytes; a path has at most 4,096 bytes"),
    ],
)
def test_names_fit_a_file_system_and_a_terminal(change: dict[str, Any], words: str) -> None:
    message = refusal(change)
    assert words.split(".*")[0] in message
    assert words.split(".*")[-1] in message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (method("orthogonal_qk", layers="0-9999999999"), "a range such as 0-3"),
        (method("orthogonal_qk", layers=[10**12]), "below 1,000"),
        (method("orthogonal_qk", seed=2**64), " 4,294,967,295"),
        (method("bpsom", grid=10**9), "from 1 to 1,000"),
        (method("bpsom", grid=1000, hidden=10_000), "a map of 10,000,000,000 weights; allowed: at most 100,000,000"),
        (method("focal", alpha=[1e300, 1]), "numbers from 1e-9 to 1e9"),
        (method("layerwise_lr", groups=[{"match": "a{99999999999}", "scale": 1}]), "not a regular expression"),
        ({"arms": {"baseline": {"methods": ["ema"] * 33}}}, "33 entries; allowed: at most 32"),
        ({"arms": {"baseline": {}, **{f"a{i}": {} for i in range(MOST_ARMS)}}}, "1,001 entries; allowed: at most 1,000"),
        ({"compare": {"margin": "1e400%"}}, "a share such as 1.5%"),
        ({"compare": {"margin": math.nan}}, "a number above 0"),
        ({"compare": {"to": "b" * 101}}, "at most 100"),
        ({"execution": {"checkpoint_every": "²s"}}, "a time such as 90s"),
        ({"execution": {"devices": "cuda:99999999999"}}, "a device"),
        ({"task": {"train": "a.csv", "labels": list(map(str, range(1001)))}}, "1,001 entries; allowed: at most 1,000"),
        ({"profiles": {str(i): {} for i in range(51)}}, "51 entries; allowed: at most 50"),
        ({**TEXT, "model": {"preset": "gpt-mini", "vocab_size": 10**9}}, " 1,000,000"),
        ({**TEXT, "model": "gpt-mini(width=1000000000)"}, "has no setting 'width'"),
    ],
)  # fmt: skip
def test_what_would_take_any_memory_or_time_is_reported_with_its_limit(change: dict[str, Any], words: str) -> None:
    assert words in refusal(change)


def test_every_default_of_every_method_is_within_its_limits() -> None:
    arms = {
        name: {"methods": [{name: found.config_class().model_dump(mode="json")}]}
        for name, found in registered().items()
    }
    load_study({**BASE, "train": Train().model_dump(mode="json"), "arms": {"baseline": {}, **arms}})


def test_a_study_of_too_many_runs_is_refused_before_they_are_expanded() -> None:
    arms = {"baseline": {}, **{f"a{i}": {} for i in range(200)}}
    assert refusal({"arms": arms, "seeds": 1000}).startswith(f"seeds: 201,000 runs; a study has at most {MOST_RUNS:,}")


def test_many_arms_are_planned(tiny_model: Path, tiny_task: Any) -> None:
    arms = {"baseline": {}, **{f"a{i}": {"lr": 1e-5 * (i + 1)} for i in range(300)}}
    plan = make_plan(load_study({**BASE, "task": tiny_task.as_study(), "model": str(tiny_model), "arms": arms}))
    assert len(plan.runs) == 1505
    assert len(plan.differences) == 299, "one of the arms has the usual learning rate"


def test_thousands_of_problems_are_reported_by_the_first() -> None:
    arms = {f"a{i}": {f"z{j}": 1 for j in range(15)} for i in range(900)}
    with pytest.raises(StudyError) as caught:
        load_study({**BASE, "arms": {"baseline": {}, **arms}})
    assert len(caught.value.problems) == MOST_SHOWN + 1
    assert "and more" in str(caught.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seeds=" + "[" * 10_000, "nested too deeply"),
        ("seeds=[" + "1," * 30_000 + "]", "more than 20,000 values"),
        ("study=" + "x" * 2_000_000, "at most 1,000,000 are read"),
        ('study="\\ud800"', "a name of letters"),
        ('study="\\U00110000"', "an escape or a directive"),
        ("profiles." + ".".join("a" * 10_000) + "=1", "the form KEY=VALUE"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_override_has_the_same_limits(override: str, words: str) -> None:
    message = refusal({}, (override,))
    assert words in message
    assert len(message) < 1000


def test_a_mapping_has_the_same_limits() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    assert "nested too deeply" in refusal({"profiles": {"p": endless}})
    assert refusal({"arms": {3: {}, "baseline": {}}}).startswith("arms[3]: found 3; allowed: letters")
    assert "unknown method" in refusal({"arms": {"baseline": {"methods": [{3: {}}]}}})


def test_a_study_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for file, words in (
        (tmp_path / "pipe.yaml", "it is a device or a pipe, not a regular file"),
        (Path("/dev/zero"), "it is a device or a pipe, not a regular file"),
        (tmp_path, "it is a folder"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path("a\0b"), "no file has such a name"),
    ):
        with pytest.raises(FairtuneError, match=words):
            load_study(file)


def test_a_study_of_any_length_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "s.yaml").open("wb") as handle:
        handle.truncate(10**10)  # takes no space
    with pytest.raises(FairtuneError, match="it is larger than 1,000,000 bytes"):
        check_file(tmp_path / "s.yaml")


def test_a_home_that_nobody_has_is_a_folder_that_is_missing() -> None:
    study = load_study({**BASE, "task": {"train": "~no-such-user/a.csv"}, "model": "~no-such-user/model"})
    with pytest.raises(FairtuneError, match="no-such-user"):
        make_plan(study)
