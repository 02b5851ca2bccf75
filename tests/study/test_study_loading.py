"""From a file, a profile and overrides to a study, or to every problem at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.study.problems import StudyError
from fairtune.study.study_file import check_file, load_study
from tests.warm import light_run

HEAD = "study: s\ntask: movie-reviews\nmodel: minilm\n"
BASE = HEAD + "arms:\n  baseline:\n"  # five lines; what a test adds starts on line 6


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(text: str | bytes) -> Path:
        file = tmp_path / "study.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return _write


def problems(file: Path, **options: Any) -> dict[str, tuple[str, str]]:
    """path -> (where, message) of all problems."""
    with pytest.raises(StudyError) as caught:
        load_study(file, **options)
    found = {p.path: (p.where, p.message) for p in caught.value.problems}
    assert len(found) == len(caught.value.problems), "a problem is reported once"
    return found


@pytest.mark.parametrize(("given", "seeds"), [("5", (0, 1, 2, 3, 4)), ("[7, 3]", (7, 3)), ("1", (0,)), ("[0]", (0,))])
def test_seeds_are_a_count_or_a_list(write: Any, given: str, seeds: tuple[int, ...]) -> None:
    assert load_study(write(BASE + f"seeds: {given}\n")).seeds == seeds


@pytest.mark.parametrize("given", ["-3", "[]", "[1, 1]", "true", "'5'", "{a: 1}"])
def test_bad_seeds_are_refused(write: Any, given: str) -> None:
    where, message = problems(write(BASE + f"seeds: {given}\n"))["seeds"]
    assert where.endswith("study.yaml:6")
    assert "a whole number from 1 to 1,000, or a list of at most 1,000 different entries" in message
    assert "found" in message


@pytest.mark.parametrize(
    ("lines", "path", "words"),
    [
        ("trian: {lr: 1}", "trian", ["unknown key", "Did you mean 'train'?", "study, task, model"]),
        ("train: {lrr: 1}", "train.lrr", ["unknown key", "Did you mean 'lr'?"]),
        ("train: {lr: fast}", "train.lr", ["found 'fast'", "a number above 0", "Learning rate"]),
        ("train: {lr: .inf}", "train.lr", ["found inf"]),
        ("train: {batch_size: 0}", "train.batch_size", ["found 0", "a whole number from 1 to 1,000,000,000"]),
        ("train: {schedule: lineer}", "train.schedule", ["linear, cosine or constant", "Did you mean 'linear'?"]),
        ("train: {betas: [0.9]}", "train.betas[1]", ["missing"]),
        ("train: {warmup: 3.5}", "train.warmup", ["found 3.5", "number of steps"]),
        (
            "train: {evaluate: never}",
            "train.evaluate",
            ["found 'never'", "a whole number from 1 to 1,000,000,000, or `epoch`"],
        ),
        ("train: {evaluate: 0}", "train.evaluate", ["found 0", "a whole number from 1 to 1,000,000,000, or `epoch`"]),
        ("dedupe: on", "dedupe", ["found 'on'; allowed: true or false. Take out"]),
        ("notes: ['']", "notes[0]", ["found ''; allowed: a text."]),
        ("order: rand", "order", ["crossover, sequential or random", "Did you mean 'random'?"]),
        ("compare: {to: baselin}", "compare.to", ["no arm is called 'baselin'", "Did you mean 'baseline'?"]),
        ("compare: {margin: -1}", "compare.margin", ["found -1", "a share such as 1.5%"]),
        ("execution: {devices: gpu}", "execution.devices[0]", ["found 'gpu'", "cuda:1"]),
        ("execution: {checkpoint_every: 5days}", "execution.checkpoint_every", ["found '5days'", "90s, 5min or 1h"]),
        ("track: [tensorbord]", "track.tensorbord", ["unknown key", "Did you mean 'tensorboard'?"]),
        ("track: [mlflow, mlflow]", "track", ["found ['mlflow', 'mlflow']", "a list of trackers"]),
        ("  x: {lr: abc}", "arms.x.lr", ["found 'abc'", "a number"]),
        ("  bad name: {}", "arms.bad name", ["found 'bad name'", "letters, digits"]),
        ("  report: {}", "arms.report", ["found 'report'", "not logs, plans, report"]),
        ("  x: {methods: [orthogonal_kq]}", "arms.x.methods[0]", ["unknown method", "Did you mean 'orthogonal_qk'?"]),
        (
            "  x: {methods: [{orthogonal_qk: {init: head}}]}",
            "arms.x.methods[0].orthogonal_qk.init",
            ["found 'head'", "allowed: keep, headwise, ", "Did you mean 'headwise'?"],
        ),
        (
            "  x: {methods: [{orthogonal_qk: {frezze: true}}]}",
            "arms.x.methods[0].orthogonal_qk.frezze",
            ["unknown key", "Did you mean 'freeze'?"],
        ),
        (
            "  x: {methods: [{orthogonal_qk: {layers: some}}]}",
            "arms.x.methods[0].orthogonal_qk.layers",
            [
                "found 'some'",
                "allowed: a range such as 0-3, ",
                "or a list of at most 1,000 entries (each a whole number",
            ],
        ),
        (
            "  x: {methods: [{orthogonal_qk: {layers: [0, x]}}]}",
            "arms.x.methods[0].orthogonal_qk.layers",
            ["found [0, 'x']", "each a whole number"],
        ),
        (
            "  x: {methods: [{orthogonal_qk: {parts: []}}]}",
            "arms.x.methods[0].orthogonal_qk",
            ["parts is empty, so nothing would change"],
        ),
        (
            "  x: {methods: [orthogonal_qk, {orthogonal_qk: {init: keep}}]}",
            "arms.x.methods[1]",
            ["both change the query and key projections", "keep one"],
        ),
    ],
)
def test_a_wrong_value_is_reported_with_line_what_was_found_and_what_is_allowed(
    write: Any, lines: str, path: str, words: list[str]
) -> None:
    file = write(BASE + lines + "\n")
    found = problems(file)
    assert list(found) == [path]
    where, message = found[path]
    assert where == f"{file}:6"
    assert "Did you mean ''?" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        (HEAD, "arms", "is missing"),
        (HEAD + "arms: {}\n", "arms", "is empty"),
        (HEAD + "arms: baseline\n", "arms", "a mapping, or a list of different entries (each baseline, "),
        (HEAD + "arms: {other: }\n", "compare.to", "no arm is called 'baseline'; arms: other"),
        (BASE.replace("task: movie-reviews", "task: 7"), "task", "a name, or a mapping"),
        (BASE.replace("task: movie-reviews", "task: {text: t}"), "task.train", "is missing"),
        (BASE.replace("movie-reviews", "{train: a.csv, text: [a, b, c]}"), "task.text", "found ['a', 'b', 'c']"),
        (BASE.replace("movie-reviews", "{train: a.csv, text: a, metric: acc}"), "task.metric", "macro_f1"),
        (BASE.replace("movie-reviews", "{train: a.csv, text: a, holdout: {test: 2}}"), "task.holdout.test", "below 1"),
        (BASE.replace("movie-reviews", "{trian: a.csv, train: a.csv, text: a}"), "task.trian", "Did you mean 'train'?"),
        (BASE.replace("study: s", "study: ../up"), "study", "found '../up'"),
    ],
)
def test_missing_and_empty_parts_are_reported(write: Any, text: str, path: str, words: str) -> None:
    found = problems(write(text))
    assert list(found) == [path]
    assert words in found[path][1]


def test_every_problem_of_a_file_is_reported_at_once_in_the_order_of_its_lines(write: Any) -> None:
    file = write(
        "study: s\n"
        "task: movie-reviews\n"
        "modle: minilm\n"
        "train:\n"
        "  batch_size: 0\n"
        "seeds: -1\n"
        "arms:\n"
        "  baseline: {lr: x}\n"
        "  other: {methods: [nothing]}\n"
        "compare: {to: bas}\n"
    )
    with pytest.raises(StudyError) as caught:
        load_study(file)
    places = [(p.where.rpartition(":")[2], p.path) for p in caught.value.problems]
    assert places == [
        ("1", "model"),
        ("3", "modle"),
        ("5", "train.batch_size"),
        ("6", "seeds"),
        ("8", "arms.baseline.lr"),
        ("9", "arms.other.methods[0]"),
        ("10", "compare.to"),
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    assert all(line.startswith(f"{file}:") for line in lines)
    assert caught.value.as_json()[1]["path"] == "modle"


def test_two_arms_of_one_name_are_refused_with_both_lines(write: Any) -> None:
    file = write(BASE + "  other:\n  baseline: {lr: 1}\n")
    with pytest.raises(StudyError, match=r"study\.yaml:7: .*'baseline' is given twice, first on line 5"):
        load_study(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found nothing; a study file is a mapping"),
        ("- a\n- b\n", "found ['a', 'b']"),
        (b"study: caf\xe9\n", "not UTF-8 text (byte 10); save the study file as UTF-8"),
        ("a: &a [*a]\n", "contains itself"),
        ("study: !!python/object/apply:os.system [echo hi]\n", "not allowed"),
        ("study: 's\n", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_study_is_refused(write: Any, text: str | bytes, words: str) -> None:
    file = write(text)
    with pytest.raises(FairtuneError) as caught:
        load_study(file)
    assert str(caught.value).startswith(str(file))
    assert words in str(caught.value)


def test_a_missing_file_names_the_nearest(tmp_path: Path, write: Any) -> None:
    write(BASE)
    with pytest.raises(FairtuneError, match=r"no such study file\. Did you mean '.*study\.yaml'"):
        load_study(tmp_path / "studdy.yaml")
    with pytest.raises(FairtuneError, match="no such study file"):
        load_study(tmp_path / "nowhere" / "study.yaml")
    with pytest.raises(FairtuneError, match="cannot be read"):
        load_study(tmp_path)


def test_a_utf8_byte_order_mark_does_no_harm(write: Any) -> None:
    assert load_study(write(b"\xef\xbb\xbf" + BASE.encode())).study == "s"


def test_a_profile_is_merged_into_the_study(write: Any) -> None:
    text = (
        BASE
        + "  fast: {lr: 1e-4, epochs: 2}\n"
        + "train: {epochs: 3, batch_size: 8}\n"
        + "profiles:\n  laptop: {model: other, train: {epochs: 1}, seeds: [4], arms: {fast: {lr: 5e-4}}}\n"
    )
    study = load_study(write(text), profile="laptop")
    assert (study.model, study.seeds, study.train.epochs, study.train.batch_size) == ("other", (4,), 1, 8)
    assert (study.settings("fast").lr, study.settings("fast").epochs) == (5e-4, 2)
    assert load_study(write(text)).train.epochs == 3, "without --profile the study is as written"
    assert load_study(write(text), ["train.epochs=9"], "laptop").train.epochs == 9, "overrides come last"


def test_errors_in_a_profile_point_to_the_profiles_own_line(write: Any) -> None:
    file = write(
        BASE
        + "train: {lr: 1}\nseeds: 2\nprofiles:\n  p:\n    train:\n      lr: x\n    seeds: -1\n    arms: {b: {lrr: 1}}\n"
    )
    assert load_study(file).train.lr == 1, "a profile that is not chosen does no harm"
    found = problems(file, profile="p")
    assert {path: where for path, (where, _) in found.items()} == {
        "train.lr": f"{file}:11",
        "seeds": f"{file}:12",
        "arms.b.lrr": f"{file}:13",
    }
    with pytest.raises(StudyError, match=r"study\.yaml:11: profile p: train\.lr"):
        check_file(file)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("profiles: {laptop: {seeds: 1}}", "no such profile in .*; known: laptop. Did you mean 'laptop'"),
        ("", "known: this study has none"),
        ("profiles: {labtop: 3}", "a mapping of changes"),
        ("profiles: {labtop: {profiles: {labtop: {seeds: 2}}}}", "a profile cannot change profiles"),
    ],
)
def test_an_unknown_or_unusable_profile_is_refused(write: Any, lines: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        load_study(write(BASE + lines + "\n"), profile="labtop")


def test_overrides_set_nested_values_lists_and_new_places(write: Any) -> None:
    study = load_study(
        write(BASE),
        [
            "train.lr=3e-4",
            "seeds=[3, 5]",
            "arms.baseline.epochs=1.5",
            "arms.oelm.methods=[{orthogonal_qk: {init: keep}}]",
            "compare.margin=2%",
            "train.clip=null",
            "execution.devices=[cpu]",
        ],
    )
    assert study.train.lr == 3e-4
    assert study.seeds == (3, 5)
    assert study.settings("baseline").epochs == 1.5
    assert study.methods("oelm")[0].as_json()["orthogonal_qk"]["init"] == "keep"
    assert study.compare.margin == "2%"
    assert study.train.clip is None
    assert study.execution.devices == ("cpu",)


@pytest.mark.parametrize(
    ("override", "methods"),
    [
        ("arms.x.methods.0.focal.gamma=3", [("focal", 3), ("ema", 0.9)]),
        ("arms.x.methods.1.ema.decay=0.5", [("focal", 2), ("ema", 0.5)]),
    ],
)
def test_overrides_change_an_entry_of_a_list_by_its_number(write: Any, override: str, methods: list[Any]) -> None:
    uses = load_study(write(BASE + "  x: {methods: [focal, {ema: {decay: 0.9}}]}\n"), [override]).methods("x")
    assert [(use.name, next(iter(use.config.model_dump().values()))) for use in uses] == methods


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seeds", "has the form KEY=VALUE"),
        ("train.lr.x=3", "found {'x': 3}"),
        ("seeds=[1,", "not valid YAML"),
        ("seeds=-1", "seeds: found -1"),
        ("trian.lr=1", "Did you mean 'train'"),
        ("lr=1e-4", "Did you mean 'train.lr'?"),
        ("train.learning_rate=1e-4", "Did you mean 'train.lr'?"),
        ("arms.listed.methods.2=fgm", "arms.listed.methods is a list of 2"),
        ("arms.listed.methods.focal.gamma=3", "found 'focal'"),
        ("arms.x.methods=[orthogonal_kq]", "Did you mean 'orthogonal_qk'"),
    ],
)
def test_a_bad_override_is_reported_with_the_option(write: Any, override: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(write(BASE + "  listed: {methods: [focal, ema]}\n"), [override])
    assert str(caught.value).startswith(f"--set {override}: ")
    assert words in str(caught.value)


def test_an_arms_own_settings_replace_the_studys(write: Any) -> None:
    study = load_study(
        write(
            BASE
            + "  own: {lr: 1e-4, clip: null, batch_size: 4}\n"
            + "  epochs: {epochs: 1}\n"
            + "  empty: {lr: null}\n"
            + "train: {lr: 3e-5, clip: 0.5, steps: 10}\n"
        )
    )
    own = study.settings("own")
    assert (own.lr, own.clip, own.batch_size, own.steps) == (1e-4, None, 4, 10)
    assert study.settings("baseline").clip == 0.5
    assert study.settings("epochs").steps is None, "an arm's own epochs replace the study's steps"
    assert study.settings("empty").lr == 3e-5, "null where null means nothing keeps the study's value"


def test_relative_files_start_at_the_study_file(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = BASE.replace("movie-reviews", "{train: data/a.csv, test: /b.csv, validation: ~/c.csv, text: t}")
    study = load_study(write(text.replace("minilm", "./model") + "  x: {model: ./other}\n"))
    assert study.task.train == str(tmp_path / "data/a.csv")
    assert study.task.test == "/b.csv"
    assert study.task.validation == str(tmp_path / "home/c.csv")
    assert (study.model, study.model_of("x")) == (str(tmp_path / "model"), str(tmp_path / "other"))


def test_a_mapping_is_a_study_too_and_is_not_changed() -> None:
    source = {
        "study": "s",
        "task": "movie-reviews",
        "model": "minilm",
        "arms": {"baseline": None},
        "train": {"lr": 1e-3},
    }
    study = load_study(source, ["train.lr=1", "arms.x.lr=2"])
    assert (study.train.lr, study.settings("x").lr) == (1, 2)
    assert source["train"] == {"lr": 1e-3}
    assert list(source["arms"]) == ["baseline"]
    with pytest.raises(StudyError, match=r"^study: seeds: found 0"):
        load_study({**source, "seeds": 0})


@pytest.mark.parametrize(
    "statement",
    [
        "import fairtune.study.study_file",
        "from fairtune.study.study_file import check_file; check_file({file!r})",
        "import fairtune.methods.registry as r; r.registered()",
        "from fairtune.study.fields import field_docs; field_docs()",
        "import fairtune.study.plan",
    ],
)
def test_reading_a_study_needs_no_heavy_import(write: Any, statement: str) -> None:
    file = write(BASE + "  x: {methods: [{orthogonal_qk: {init: keep}}]}\nprofiles: {p: {seeds: 1}}\n")
    heavy = "{'torch', 'transformers', 'pandas', 'accelerate', 'matplotlib'}"
    code = f"import sys; {statement.format(file=str(file))}; print(sorted({heavy} & set(sys.modules)))"
    done = light_run([sys.executable, "-c", code], text=True, check=True)
    assert done.stdout.strip() == "[]"
