"""Named arms in a study: by name, as a preset, as a list; and no arm is silently a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.methods.arms import named_arms
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import parse_method_use
from fairtune.settings.learners import LEARNERS
from fairtune.study.plan import make_plan
from fairtune.study.problems import StudyError
from fairtune.study.schema import Study
from fairtune.study.study_file import check_file, load_study

HEAD = "study: s\ntask: movie-reviews\nmodel: minilm\n"
BASE = HEAD + "arms:\n  baseline:\n"  # five lines; what a test adds starts on line 6
HEADWISE = {"orthogonal_qk": {"init": "headwise"}}
KEEP = {"orthogonal_qk": {"init": "keep"}}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(text: str) -> Path:
        file = tmp_path / "study.yaml"
        file.write_text(text)
        return file

    return _write


def study(arms: Any, *overrides: str, **more: Any) -> Study:
    return load_study({"study": "s", "task": "t", "model": "m", "arms": arms, **more}, overrides)


def problems(source: Any, *overrides: str, profile: str | None = None) -> dict[str, tuple[str, str]]:
    """path -> (where, message) of all problems."""
    with pytest.raises(StudyError) as caught:
        load_study(source, overrides, profile)
    found = {p.path: (p.where, p.message) for p in caught.value.problems}
    assert len(found) == len(caught.value.problems), "a problem is reported once"
    return found


def uses(*methods: Any) -> tuple[MethodUse, ...]:
    return tuple(parse_method_use(method) for method in methods)


@pytest.mark.parametrize("name", sorted(named_arms()))
@pytest.mark.parametrize("arm", [None, {}, {"lr": 1e-4}, {"preset": None}])
def test_an_arm_of_a_known_name_has_that_named_arms_methods(name: str, arm: Any) -> None:
    known = named_arms()[name]
    arm = {"examples": 500} if known.learner and arm == {"lr": 1e-4} else arm  # a rate means nothing to most learners
    found = study({"baseline": {}, name: arm})
    assert found.methods(name) == known.uses
    assert found.learner(name) == (LEARNERS[known.learner] if known.learner else None)


def test_a_preset_is_a_named_arm_under_another_name() -> None:
    found = study({"baseline": {}, "oelm-hot": {"preset": "oelm-freeze", "lr": 3e-4}, "plain": {"preset": "baseline"}})
    assert found.methods("oelm-hot") == uses(HEADWISE)
    assert found.settings("oelm-hot").lr == 3e-4
    assert found.methods("plain") == ()


def test_a_preset_wins_over_the_name() -> None:
    assert study({"baseline": {}, "oelm-freeze": {"preset": "freeze-pretrained"}}).methods("oelm-freeze") == uses(KEEP)


@pytest.mark.parametrize("methods", [[], [KEEP]])
def test_explicit_methods_win_over_the_name(methods: list[Any]) -> None:
    found = study({"baseline": {"methods": methods}, "oelm-freeze": {"methods": methods}})
    assert found.methods("oelm-freeze") == found.methods("baseline") == uses(*methods)


def test_a_list_takes_named_arms_as_they_are() -> None:
    found = study(["baseline", "oelm-freeze"])
    assert list(found.arms) == ["baseline", "oelm-freeze"]
    assert found.methods("baseline") == ()
    assert found.methods("oelm-freeze") == uses(HEADWISE)
    assert found == study({"baseline": {}, "oelm-freeze": {}})
    direct = Study.model_validate({"study": "s", "task": "t", "model": "m", "arms": ["baseline", "oelm-freeze"]})
    assert direct == found, "a study made without the reader knows named arms too"


@pytest.mark.parametrize("name", ["baseline-fast", "baselin", "pretrained"])
def test_any_other_name_is_a_plain_arm_without_methods(name: str) -> None:
    found = study({"baseline": {}, name: {"lr": 1e-4}})
    assert found.methods(name) == ()
    assert found.settings(name).lr == 1e-4


def test_the_plan_is_the_same_whether_methods_are_named_or_written_out(tiny_model: Path, tiny_task: Any) -> None:
    def plan(arms: Any) -> Any:
        source = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": arms, "seeds": 2}
        return make_plan(load_study(source))

    written = plan({"baseline": {"methods": []}, "oelm-freeze": {"methods": [HEADWISE]}})
    for arms in (
        ["baseline", "oelm-freeze"],
        {"baseline": {}, "oelm-freeze": {}},
        {"baseline": None, "oelm-freeze": {"preset": "oelm-freeze"}},
    ):
        named = plan(arms)
        assert named.hash == written.hash
        assert [run.key for run in named.runs] == [run.key for run in written.runs]
        assert named.as_json() == written.as_json()
    assert plan(["baseline", "oelm-random"]).hash != written.hash
    assert plan(["baseline", "baseline-trainable"]).hash != plan(["baseline"]).hash


@pytest.mark.parametrize("arms", [["baseline", "oelm-freeze"], {"baseline": {}, "oelm-freeze": {"epochs": 1}}])
def test_overrides_change_one_arm_and_keep_its_methods(arms: Any) -> None:
    found = study(arms, "arms.oelm-freeze.lr=1e-4")
    assert found.settings("oelm-freeze").lr == 1e-4
    assert found.methods("oelm-freeze") == uses(HEADWISE)
    assert study(arms, "arms.oelm-freeze.methods=[]").methods("oelm-freeze") == ()
    assert study(arms, "arms.oelm-freeze.preset=oelm-random").methods("oelm-freeze") == named_arms()["oelm-random"].uses
    assert list(study(arms, "arms.oelm-global.lr=1").arms) == ["baseline", "oelm-freeze", "oelm-global"]
    assert list(study(arms, "arms.oelm-freeze=null").arms) == ["baseline"]


def test_profiles_change_arms_of_either_form(write: Any) -> None:
    file = write(
        HEAD
        + "arms: [baseline, oelm-freeze]\n"
        + "profiles:\n"
        + "  hot: {arms: {oelm-freeze: {lr: 1e-3}, oelm-random: {}}}\n"
        + "  few: {arms: [baseline, freeze-pretrained]}\n"
        + "  bad: {arms: [baseline, freeze-pretraned]}\n"
    )
    hot = load_study(file, profile="hot")
    assert list(hot.arms) == ["baseline", "oelm-freeze", "oelm-random"]
    assert (hot.settings("oelm-freeze").lr, hot.methods("oelm-freeze")) == (1e-3, uses(HEADWISE))
    assert list(load_study(file, profile="few").arms) == ["baseline", "freeze-pretrained"]
    assert load_study(file, ["arms.baseline.lr=1"], "few").settings("baseline").lr == 1
    with pytest.raises(StudyError) as raised:
        check_file(file)
    (problem,) = raised.value.problems
    assert problem.where.endswith(":8")
    assert problem.path.endswith("profiles.bad.arms")
    assert "'freeze-pretraned'" in problem.message
    assert "Did you mean 'freeze-pretrained'?" in problem.message


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        (
            "  x: {preset: oelm-freze}",
            "arms.x.preset",
            ["unknown named arm 'oelm-freze'; allowed: baseline, ", "Did you mean 'oelm-freeze'?"],
        ),
        ("  x: {preset: 3}", "arms.x.preset", ["found 3", "allowed: baseline, ", "or null"]),
        ("  x: {perset: oelm-freeze}", "arms.x.perset", ["unknown key", "Did you mean 'preset'?"]),
        ("  x: {preset: oelm-freeze, methods: []}", "arms.x.preset", ["together with `methods`; keep one"]),
        ("  oelm-freeze: {methods: null}", "arms.oelm-freeze.methods", ["found None", "a list"]),
        ("  oelm-freeze: 3", "arms.oelm-freeze", ["found 3", "a mapping"]),
    ],
)
def test_a_wrong_preset_is_reported_with_its_line(write: Any, line: str, path: str, words: list[str]) -> None:
    file = write(BASE + line + "\n")
    found = problems(file)
    assert list(found) == [path]
    where, message = found[path]
    assert where == f"{file}:6"
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("oelm-freze", "oelm-freeze"),
        ("OELM-Freeze", "oelm-freeze"),
        ("freeze-pretrained-with-a-much-higher-rate", "freeze-pretrained"),
        ("random-orthogonal", "oelm-random-orthogonal"),
    ],
)
def test_a_near_miss_of_an_arm_with_methods_is_not_silently_a_baseline(write: Any, name: str, meant: str) -> None:
    file = write(BASE + f"  {name}: {{lr: 1e-4}}\n")
    (where, message) = problems(file)[f"arms.{name}"]
    assert where == f"{file}:6"
    assert "would train as a baseline" in message
    assert f"Did you mean '{meant}'?" in message
    assert "`methods: []` if it is meant to have none" in message
    assert load_study(file, [f"arms.{name}.methods=[]"]).methods(name) == ()
    assert load_study(file, [f"arms.{name}.preset={meant}"]).methods(name) == named_arms()[meant].uses


@pytest.mark.parametrize("name", ["oelm2", "Oelm"])
def test_a_name_that_begins_like_oelm_promises_methods(name: str) -> None:
    source = {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, name: {"lr": 1e-4}}}
    (_, message) = problems(source)[f"arms.{name}"]
    assert "begins with 'oelm'" in message
    assert "oelm-freeze, " in message
    assert "`methods: []` if it is meant to have none" in message
    assert load_study(source, [f"arms.{name}.methods=[]"]).methods(name) == ()


@pytest.mark.parametrize("name", ["orthogonal-qk", "orthogonal_qk-hot"])
def test_an_arm_called_like_a_method_must_list_it(name: str) -> None:
    source = {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}, name: {}}}
    assert "Write `methods: [orthogonal_qk]`, or `methods: []`" in problems(source)[f"arms.{name}"][1]


@pytest.mark.parametrize(
    ("items", "path", "line", "words"),
    [
        (["baseline", "oelm-freze"], "arms[1]", 6, "Did you mean 'oelm-freeze'?"),
        (["baseline", "oelm-freeze: {lr: 1e-4}"], "arms[1]", 6, "written `NAME: {lr: 1e-4}`, in a mapping"),
        (["baseline", "baseline"], "arms", 4, "a mapping, or a list of different entries (each baseline, "),
    ],
)
def test_a_list_that_holds_anything_else_is_refused(
    write: Any, items: list[str], path: str, line: int, words: str
) -> None:
    file = write(
        HEAD + "arms:\n" + "".join(f"  - {item}\n" for item in items) + "profiles: {p: {arms: {baseline: }}}\n"
    )
    found = problems(file)
    assert list(found) == [path]
    assert found[path][0] == f"{file}:{line}"
    assert words in found[path][1]
    assert problems(file, "arms.baseline.lr=1") == found, "a change to a bad list does not hide what is wrong with it"
    assert problems(file, profile="p") == found
