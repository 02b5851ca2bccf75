"""Suite files: both forms, profiles and changes, and one clear message for everything that can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.study.study_file import load_study
from fairtune.study.suite_file import load_suite
from fairtune.study.yaml_tree import parse_yaml

ROOT = Path(__file__).parents[2]
ARMS = "arms: {baseline: {}, mine: {methods: [fgm]}}"
STUDY = f"study: NAME\ntask: TASK\nmodel: minilm\n{ARMS}\nprofiles: {{short: {{train: {{steps: 2}}}}}}\n"


def study(name: str, task: str) -> str:
    return STUDY.replace("NAME", name).replace("TASK", task)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.yaml").write_text(study("a", "sst2"))
    (tmp_path / "b.yaml").write_text(study("b", "mrpc"))
    (tmp_path / "c.yaml").write_text(study("c", "cola").replace("mine", "other"))
    (tmp_path / "inner.yaml").write_text("suite: inner\nstudies: [a.yaml]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> str:
    (folder / "s.yaml").write_text(text)
    return "s.yaml"


@pytest.mark.parametrize("file", sorted((ROOT / "suites").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_suite_is_valid_with_all_its_profiles(file: Path) -> None:
    profiles = list(parse_yaml(file.read_text()).data["profiles"])
    assert "laptop" in profiles
    names = []
    for profile in (None, *profiles):
        suite = load_suite(file, profile=profile)
        assert len({one.study.task for one in suite.studies if isinstance(one.study.task, str)}) >= 4
        assert suite.reference == "baseline"
        names.append({suite.name, *(one.study.study for one in suite.studies)})
    assert not names[0] & names[1], "runs of a profile are never mixed with those of another"


def test_the_published_table_is_whole() -> None:
    suite = load_suite(ROOT / "suites" / "oelm.yaml", profile="laptop")
    cells = {(one.group, one.study.task) for one in suite.studies}
    assert {task for group, task in cells if group == "encoder"} == {"sst2", "mnli", "xnli/en", "ag_news", "imdb"}
    assert {task for group, task in cells if group == "GPT classification"} == {"ag_news", "imdb", "xnli/en"}
    assert len({task for group, task in cells if group == "GPT generation"}) == 3
    assert all(one.study.study.endswith("-suite") and one.study.tune for one in suite.studies)


def test_studies_are_listed_by_file_with_profiles_and_changes(folder: Path) -> None:
    second_entry = "{file: b.yaml, set: {train.batch_size: 8, seeds: [7]}, group: mine}"
    text = f"suite: x\nprofile: short\nstudies:\n  - a.yaml\n  - {second_entry}\n"
    suite = load_suite(write(folder, text))
    first, second = suite.studies
    assert (first.study.train.steps, second.study.train.steps) == (2, 2)
    assert (second.study.train.batch_size, second.study.seeds, second.group) == (8, (7,), "mine")
    assert load_study(second.source) == second.study, "what is run is what was read"


def test_overrides_change_every_study(folder: Path) -> None:
    suite = load_suite(write(folder, "suite: x\nstudies: [a.yaml, b.yaml]\n"), ["seeds=2"])
    assert [one.study.seeds for one in suite.studies] == [(0, 1), (0, 1)]


def test_one_study_over_tasks_and_models(folder: Path) -> None:
    gpt = "{model: {preset: gpt-mini}, name: gpt, set: {tokenizer: {train: 500}}}"
    text = f"suite: x\ntasks: [sst2, {{task: xnli/en, set: {{train.epochs: 1}}}}]\nmodels: [minilm, {gpt}]\n{ARMS}\n"
    suite = load_suite(write(folder, text))
    assert [one.study.study for one in suite.studies] == [
        "x-sst2-minilm",
        "x-sst2-gpt",
        "x-xnli-en-minilm",
        "x-xnli-en-gpt",
    ]
    assert [one.study.train.epochs for one in suite.studies] == [3, 3, 1, 1]


def test_one_study_file_over_tasks(folder: Path) -> None:
    suite = load_suite(write(folder, "suite: x\nstudy: {file: a.yaml, profile: short}\ntasks: [mrpc, cola]\n"))
    assert [(one.study.study, one.study.task, one.study.train.steps) for one in suite.studies] == [
        ("x-mrpc", "mrpc", 2),
        ("x-cola", "cola", 2),
    ]


def test_a_profile_chooses_the_studies_and_how_they_are_read(folder: Path) -> None:
    text = "suite: x\nstudies: [a.yaml, b.yaml]\nprofiles: {one: {suite: y, profile: short, studies: [b.yaml]}}\n"
    suite = load_suite(write(folder, text), profile="one")
    assert (suite.name, [one.study.study for one in suite.studies]) == ("y", ["b"])
    assert suite.studies[0].study.train.steps == 2


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "suite: x\nstudies: [a.yaml, aa.yaml]\n",
            ["s.yaml:2: aa.yaml: there is no such study file. Did you mean 'a.yaml'?"],
        ),
        (
            "suite: x\nstudies: [a.yaml, {file: b.yaml, set: {study: a}}]\n",
            ["s.yaml:2: studies[1]: the study 'a' is studies[0] already"],
        ),
        ("suite: x\nstudies: [a.yaml, {file: a.yaml, set: {study: z}}]\n", ["sst2 with minilm is studies[0] already"]),
        ("suite: x\nstudies: [a.yaml, inner.yaml]\n", ["inner.yaml is a suite, and a suite holds studies"]),
        (
            "suite: x\nstudies: [a.yaml, c.yaml]\n",
            ["no arm but baseline is in two studies or more", "studies[0]: mine; studies[1]: other"],
        ),
        (
            "suite: x\nstudies: [a.yaml, {file: b.yaml, set: {compare.to: mine}}]\n",
            ["compared to different arms (baseline in studies[0]; mine"],
        ),
        ("suite: x\nstudis: [a.yaml]\n", ["studis: unknown key; allowed: suite, studies", "Did you mean 'studies'?"]),
        (
            "suite: x\nstudies:\n  - {fil: a.yaml}\n  - 3\n",
            ["s.yaml:3: studies[0].file: is missing", "Did you mean 'file'?", "s.yaml:4: studies[1]: found 3"],
        ),
        (
            "suite: x\nstudies: [{file: a.yaml, profile: shrt}]\n",
            ["no such profile in a.yaml; known: short. Did you mean 'short'?"],
        ),
        (
            "suite: x\nprofile: shrt\nstudies: [a.yaml]\n",
            ["s.yaml:2: no such profile in a.yaml; known: short. Did you mean 'short'?"],
        ),
        (
            "suite: x\nstudies: [{file: a.yaml, set: {train.epoch: 1}}]\n",
            ["s.yaml:2: train.epoch: unknown key", "Did you mean 'epochs'?"],
        ),
        ("suite: x\nstudies: [a.yaml]\ntasks: [sst2]\n", ["s.yaml:2: studies: lists whole studies"]),
        (
            f"suite: x\ntasks: [sst2, sst2]\nmodel: minilm\n{ARMS}\n",
            ["s.yaml:2: tasks[1]: the study 'x-sst2' is tasks[0] already"],
        ),
        (
            f"suite: x\ntasks: [sst2]\nmodels: [{{model: {{preset: gpt-mini}}}}]\n{ARMS}\n",
            ["s.yaml:3: models[0].name: is needed"],
        ),
        (
            "suite: x\ntasks: [sst2, mrpc]\nmodel: minilm\narms: {mine: {methods: [fgm]}}\n",
            ["compare.to: no arm is called 'baseline'"],
        ),
        (
            f"suite: x\ntasks: [sst2, mrpc]\nmodel: minilm\nprofile: z\n{ARMS}\n",
            ["s.yaml:4: profile: unknown key"],
        ),
        (
            f"suite: x\ntasks: [sst2, mrpc]\nmodel: minilm\ntrian: {{}}\n{ARMS}\n",
            ["s.yaml:4: trian: unknown key", "Did you mean 'train'?"],
        ),
        (study("q", "sst2"), ["this is a study, not a suite"]),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(folder: Path, text: str, messages: list[str]) -> None:
    with pytest.raises(FairtuneError) as caught:
        load_suite(write(folder, text))
    for message in messages:
        assert message in str(caught.value)


def test_problems_of_all_studies_come_at_once_each_once(folder: Path) -> None:
    (folder / "b.yaml").write_text("study: b\ntask: mrpc\nmodel: minilm\narms: {baseline: {lr: -1}}\n")
    text = f"suite: x\ntasks: [sst2, mrpc]\nmodel: minilm\nseeds: 0\n{ARMS}\n"
    with pytest.raises(FairtuneError) as caught:
        load_suite(write(folder, text))
    assert len(str(caught.value).splitlines()) == 1, "two cells, one line that is wrong"
    with pytest.raises(FairtuneError) as caught:
        load_suite(write(folder, "suite: x\nstudies: [gone.yaml, b.yaml]\n"))
    assert "gone.yaml" in str(caught.value)
    assert "arms.baseline.lr" in str(caught.value)


@pytest.mark.usefixtures("folder")
def test_a_missing_suite_file_and_a_missing_profile() -> None:
    with pytest.raises(FairtuneError, match=r"no such suite file. Did you mean 'inner.yaml'\?"):
        load_suite("iner.yaml")
    with pytest.raises(FairtuneError, match="known: this suite has none"):
        load_suite("inner.yaml", profile="laptop")


def test_a_suite_may_be_a_mapping(folder: Path) -> None:
    suite = load_suite({"suite": "x", "studies": [str(folder / "a.yaml"), str(folder / "b.yaml")]})
    assert [one.study.study for one in suite.studies] == ["a", "b"]


@pytest.mark.usefixtures("folder")
def test_a_suite_that_is_taken_for_a_study_says_so() -> None:
    with pytest.raises(FairtuneError, match="this is a suite, not a study"):
        load_study("inner.yaml")
