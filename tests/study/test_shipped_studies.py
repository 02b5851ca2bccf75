"""What is shipped works: every study file with all its profiles, and the study that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairtune.study.schema import Study
from fairtune.study.study_file import check_file, load_study
from fairtune.study.yaml_tree import parse_yaml

ROOT = Path(__file__).parents[2]
SIMPLE = ["majority", "tfidf", "linear-probe"]


def tuned(study: Study) -> list[str]:
    """The arms that are fine-tuned."""
    return [arm for arm in study.arms if study.learner(arm) is None]


STUDIES = sorted((ROOT / "studies").glob("*.yaml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_shipped_study_is_valid_with_all_its_profiles(file: Path) -> None:
    study = check_file(file)
    assert study.study == file.stem
    assert study.compare.to in study.arms


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_shipped_study_that_classifies_has_simple_baselines(file: Path) -> None:
    """A preset has no pretrained encoder to probe, and a language model has no classes."""
    study = load_study(file)
    simple = [arm for arm in study.arms if study.learner(arm) is not None]
    if study.study in LANGUAGE:
        assert simple == []
    else:
        assert set(SIMPLE[:2] if study.study in CAUSAL else SIMPLE) <= set(simple)
        assert list(study.arms)[-len(simple) :] == simple, "they come last"


OELM = {
    "baseline": {},
    "baseline-fast": {},
    "freeze-pretrained": {"init": "keep"},
    "oelm-freeze": {"init": "headwise"},
    "oelm-random": {"init": "normal"},
    "oelm-random-orthogonal": {"init": "headwise_random"},
    "oelm-global": {"init": "global"},
    "oelm-scale-matched": {"init": "headwise", "scale": "pretrained"},
    "oelm-freeze-trainable": {"init": "headwise", "freeze": False},
    "oelm-random-trainable": {"init": "normal", "freeze": False},
}
"""What each arm of the OELM studies does to the query and key projections."""


@pytest.mark.parametrize(("name", "task", "arms"), [("sst2", "sst2", 10), ("mnli", "mnli", 8), ("xnli", "xnli/en", 8)])
def test_the_oelm_studies_have_the_published_settings(name: str, task: str, arms: int) -> None:
    study = load_study(ROOT / "studies" / f"{name}-oelm.yaml")
    assert (study.task, study.model) == (task, "google-bert/bert-base-uncased")
    assert (len(study.seeds), study.compare.margin) == (5, "1.5%")
    assert tuned(study) == list(OELM)[:arms]
    for arm in tuned(study):
        train = study.settings(arm)
        assert train.lr == (2e-5 if arm == "baseline" else 1e-4)
        assert (train.epochs, train.steps, train.batch_size, train.max_length) == (3, None, 32, 128)
        assert (train.betas, train.weight_decay, train.clip) == ((0.9, 0.999), 0.01, 1.0)
        assert (train.schedule, train.warmup, train.accumulate) == ("linear", 0.1, 1)
        assert (train.examples, train.eval_examples, train.patience) == (None, None, None)


@pytest.mark.parametrize("name", ["sst2", "mnli", "xnli"])
@pytest.mark.parametrize("profile", [None, "laptop"])
def test_the_arms_of_the_oelm_studies_do_what_their_names_say(name: str, profile: str | None) -> None:
    study = load_study(ROOT / "studies" / f"{name}-oelm.yaml", profile=profile)
    for arm in tuned(study):
        given = OELM[arm]
        (use,) = study.methods(arm) or (None,)
        assert (use is None) == (not given)
        if use is not None:
            settings = use.config.model_dump()
            assert use.name == "orthogonal_qk"
            assert {key: settings[key] for key in ("init", "freeze", "scale", "layers")} == {
                **{"freeze": True, "scale": None, "layers": "all"},
                **given,
            }


def test_the_study_in_the_readme_is_valid() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert load_study(parse_yaml(block).data).study == "movie-reviews"


GPT_ARMS = ["baseline", "oelm-freeze", "oelm-random", "oelm-global"]
LANGUAGE = {"gpt-tinystories": 100_000, "gpt-openwebtext": 150_000, "gpt-wikitext103": 200_000}
CAUSAL = {"gpt-imdb": 3, "gpt-agnews": 3, "gpt-xnli": 2}


@pytest.mark.parametrize("name", [*LANGUAGE, *CAUSAL])
@pytest.mark.parametrize("profile", [None, "laptop"])
def test_every_arm_of_the_gpt_studies_has_both_published_rates(name: str, profile: str | None) -> None:
    study = load_study(ROOT / "studies" / f"{name}.yaml", profile=profile)
    found: dict[str, set[float]] = {}
    for arm in tuned(study):
        (use,) = study.methods(arm) or (None,)
        init = "baseline" if use is None else f"oelm-{use.config.model_dump()['init']}"
        found.setdefault(init, set()).add(study.settings(arm).lr)
    inits = ("baseline", "oelm-headwise", "oelm-normal", "oelm-global")
    assert found == {init: {3e-4, 1e-3} for init in inits}
    assert study.settings("baseline").lr == 3e-4, "as published"
    assert all(study.settings(arm).lr == 1e-3 for arm in GPT_ARMS[1:]), "as published"
    assert len(study.seeds) >= 3


@pytest.mark.parametrize("name", LANGUAGE)
def test_the_language_model_studies_have_the_published_settings(name: str) -> None:
    study = load_study(ROOT / "studies" / f"{name}.yaml")
    assert (study.model, study.tokenizer) == ("gpt-medium-512", "openai-community/gpt2")
    assert study.compare.margin == "5%"
    assert study.compare.target_loss is not None
    for arm in study.arms:
        train = study.settings(arm)
        assert (train.steps, train.batch_size, train.max_length, train.accumulate) == (LANGUAGE[name], 8, 512, 1)
        assert (train.betas, train.weight_decay, train.clip) == ((0.9, 0.999), 0.01, 1.0)
        assert (train.schedule, train.warmup, train.tokens) == ("cosine", 1000, None)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_causal_classifiers_have_the_published_settings_and_tell_the_published_mask_apart(name: str) -> None:
    file = ROOT / "studies" / f"{name}.yaml"
    study, published = load_study(file), load_study(file, profile="bidirectional")
    assert (study.model, study.tokenizer) == ("gpt-medium-512", "openai-community/gpt2")
    assert published.study != study.study
    for arm in study.arms:
        train = study.settings(arm)
        assert (train.epochs, train.batch_size, train.max_length) == (CAUSAL[name], 16, 512)
        assert (train.weight_decay, train.clip, train.schedule, train.warmup) == (0.01, 1.0, "constant", 0)
        assert train.attention == "causal"
        assert published.settings(arm) == train.model_copy(update={"attention": "bidirectional"})


@pytest.mark.parametrize("page", ["language-models.md", "gpt-classification.md", "language-model-data.md"])
def test_the_studies_in_the_docs_of_gpt_are_valid(page: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        assert load_study(parse_yaml(block).data).arms


BPSOM = {
    "baseline": None,
    "bpsom-observer": {"alpha": 0.0, "prune": None},
    "bpsom": {},
    "bpsom-alpha-10": {"alpha": 0.1},
    "bpsom-alpha-50": {"alpha": 0.5},
    "bpsom-grid-10": {"grid": 10},
    "bpsom-grid-30": {"grid": 30},
    "bpsom-prune-01": {"prune": 0.01},
    "bpsom-prune-05": {"prune": 0.05},
    "bpsom-no-prune": {"prune": None},
}
"""How each arm of the BP-SOM studies differs from the published settings."""
PUBLISHED = {
    "hidden": 128,
    "grid": 20,
    "alpha": 0.25,
    "som_lr": (0.2, 0.05),
    "radius": (2, 0),
    "reliability": 0.95,
    "prune": 0.02,
    "schedule": "epoch",
    "relabel": "epoch",
}


@pytest.mark.parametrize("profile", [None, "laptop"])
@pytest.mark.parametrize("task", ["sst2", "mrpc", "cola"])
def test_the_bpsom_studies_have_the_published_settings_and_one_change_per_arm(task: str, profile: str | None) -> None:
    study = load_study(ROOT / "studies" / f"bpsom-{task}.yaml", profile=profile)
    assert (study.task, study.compare.to, tuned(study)) == (task, "baseline", list(BPSOM))
    assert len({study.settings(arm) for arm in study.arms}) == 1, "no arm has settings of its own"
    train = study.settings("bpsom")
    assert (train.batch_size, train.patience) == (32, 3)
    if profile is None:
        assert (study.model, train.lr, train.max_length) == ("google-bert/bert-base-uncased", 2e-5, 128)
        assert train.epochs == 10
        assert (train.examples, train.eval_examples) == (None, None)
    for arm, change in BPSOM.items():
        (use,) = study.methods(arm) or (None,)
        assert (use is None) == (change is None)
        if use is not None and change is not None:
            settings = use.config.model_dump()
            assert {key: settings[key] for key in PUBLISHED} == {**PUBLISHED, **change}


OELM_PAIR, GPT_PAIR = ({"baseline": 2e-5, "oelm-freeze": 1e-4}, {"baseline": 3e-4, "oelm-freeze": 1e-3})
AS_PUBLISHED = {
    "sst2-oelm": {**OELM_PAIR, "oelm-random": 1e-4},
    "mnli-oelm": OELM_PAIR,
    "xnli-oelm": {**OELM_PAIR, "oelm-random": 1e-4},
    "agnews-oelm": {"baseline-fast": 1e-4, "freeze-pretrained": 1e-4},
    "imdb-oelm": {"baseline-fast": 1e-4, "freeze-pretrained": 1e-4},
    "gpt-tinystories": {**GPT_PAIR, "oelm-random": 1e-3, "oelm-global": 1e-3},
    "gpt-openwebtext": GPT_PAIR,
    "gpt-wikitext103": GPT_PAIR,
    **dict.fromkeys(CAUSAL, GPT_PAIR),
    **{f"bpsom-{task}": {"baseline": 2e-5, "bpsom": 2e-5} for task in ("sst2", "mrpc", "cola", "test")},
    "titles-recommended": {"baseline": 2e-5, "recommended": 2e-5},
}
"""The arms and learning rates of the published experiments."""


@pytest.mark.parametrize("name", AS_PUBLISHED)
def test_as_published_is_the_published_experiment_and_nothing_else(name: str) -> None:
    file = ROOT / "studies" / f"{name}.yaml"
    study, published = load_study(file), load_study(file, profile="as-published")
    assert published.study == f"{name}-as-published"
    assert {arm: published.settings(arm).lr for arm in published.arms} == AS_PUBLISHED[name]
    for arm in published.arms:
        asked = study.settings(arm)
        if name in CAUSAL:
            asked = asked.model_copy(update={"attention": "bidirectional"})
        assert published.settings(arm) == asked
        assert published.methods(arm) == study.methods(arm)


def test_the_title_tricks_are_the_published_ones() -> None:
    study = load_study(ROOT / "studies" / "titles-ablation.yaml", profile="as-published")
    methods = {arm: {use.name: use.config.model_dump() for use in study.methods(arm)} for arm in study.arms}
    assert methods["add-focal"]["focal"]["alpha"] == (0.25, 0.25), "one factor for both classes"
    assert methods["add-fgm-table"]["fgm"]["target"] == "table"
    groups = methods["add-layerwise"]["layerwise_lr"]["groups"]
    rates = {group["part"]: group["scale"] * study.settings("add-layerwise").lr for group in groups}
    assert rates == pytest.approx({"embeddings": 2e-5, "lower": 2e-5, "upper": 3e-5, "head": 5e-5})
    assert [study.settings(f"length-{length}").max_length for length in (64, 128, 512)] == [64, 128, 512]
