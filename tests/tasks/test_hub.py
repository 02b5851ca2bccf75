"""Tasks from the hub: the real `datasets` library against a hub on the loopback, in processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from local_hub import hub_environment, local_hub
from made_mirror import Row, make_inference, make_sst2, make_task, read_split, sentences
from pyarrow import parquet
from tests.warm import hub_run

from fairtune.tasks import load_task
from fairtune.tasks.definitions import COLA, DEFINITIONS, SST2, DataSet

pytestmark = pytest.mark.slow

Read = Callable[..., dict[str, Any]]
READ = """
import json, os, sys
from fairtune.core.errors import DataError
from fairtune.tasks import load_task
answers = {}
for name in sys.argv[1:]:
    try:
        facts = load_task(name).facts()
        answers[name] = {"rows": facts.rows, "source": facts.source, "fingerprint": facts.fingerprint}
    except DataError as error:
        answers[name] = {"error": str(error)}
print(json.dumps(answers))
sys.stdout.flush()
os._exit(0)  # to take down all that was imported takes longer than to read
"""


def publish(root: Path, data: DataSet, config: str, splits: dict[str, list[Row]], revision: str | None = None) -> None:
    """Put a config of a data set on the hub as the real one has it: Parquet files and a card that names them."""
    folder = root / data.repository / (revision or data.revision)
    (folder / config).mkdir(parents=True)
    for split, rows in splits.items():
        parquet.write_table(pa.Table.from_pylist(rows), folder / config / f"{split}-00000-of-00001.parquet")
    card = folder / "README.md"
    head = card.read_text().removesuffix("---\n") if card.exists() else "---\nconfigs:\n"
    files = "".join(f"  - split: {split}\n    path: {config}/{split}-*\n" for split in splits)
    card.write_text(f"{head}- config_name: {config}\n  data_files:\n{files}---\n")


@pytest.fixture
def read(tmp_path: Path, hub_home: Path) -> Read:
    """Load tasks in a fresh process whose hub cache is this test's own; of one task, its answer alone."""

    def run(names: str, endpoint: str | None = None, **variables: str) -> dict[str, Any]:
        own = {"FAIRTUNE_CACHE": str(tmp_path / "prepared"), **variables}
        environment = {**hub_environment(hub_home, endpoint), **own}
        done = hub_run([sys.executable, "-c", READ, *names.split()], env=environment, text=True)
        assert done.returncode == 0, done.stderr
        answers: dict[str, Any] = json.loads(done.stdout)
        return answers if len(answers) > 1 else answers[names]

    return run


def sst2(words: str = "") -> dict[str, list[Row]]:
    return {
        "train": sentences(f"{words}train", 40),
        "validation": sentences("validation", 21),
        "test": sentences("test", 16, secret=True),
    }


def test_the_hub_gives_the_same_task_as_a_mirror_at_the_pinned_commit(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "hub", SST2, "sst2", sst2())
    asked: list[str] = []
    with local_hub(tmp_path / "hub", asked) as endpoint:
        found = read("sst2", endpoint)
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(make_sst2(tmp_path / "mirror", secret=True)))
    assert found["fingerprint"] == load_task("sst2").fingerprint
    assert found["rows"] == {"train": 40, "validation": 10, "test": 11}, "the hub's test labels are -1"
    assert found["source"].startswith("hub nyu-mll/glue (sst2) at bcdcba79; halves of the validation split")
    fetched = [line for line in asked if "parquet" in line]
    assert fetched
    assert all(SST2.revision in line for line in fetched)

    assert read("sst2") == found, "what was fetched once is there without network"


def test_another_commit_in_the_cache_is_not_taken_for_the_pinned_one(
    tmp_path: Path, hub_home: Path, read: Read
) -> None:
    other = "0" * 40
    publish(tmp_path / "hub", SST2, "sst2", sst2("other "), other)
    fetch = f"import datasets; datasets.load_dataset('nyu-mll/glue', 'sst2', revision='{other}')"
    with local_hub(tmp_path / "hub", []) as endpoint:
        hub_run([sys.executable, "-c", fetch], env=hub_environment(hub_home, endpoint), check=True)
    assert f"the hub did not give nyu-mll/glue (sst2) at bcdcba79 (in its place is {other})" in read("sst2")["error"]


def test_a_hub_without_the_commit_or_the_columns_is_reported(tmp_path: Path, read: Read) -> None:
    with local_hub(tmp_path / "hub", []) as endpoint:
        error = read("sst2", endpoint)["error"]
        assert "the hub did not give nyu-mll/glue (sst2)" in error
        assert "or connect to the network" in error
        renamed = {name: [{"text": "a", "label": 0}, {"text": "b", "label": 1}] for name in ("train", "validation")}
        publish(tmp_path / "hub", SST2, "sst2", renamed)
        assert "split train: no column 'sentence'; columns: text, label" in read("sst2", endpoint)["error"]


def test_a_mirror_that_lacks_the_task_leaves_it_to_the_hub(tmp_path: Path, read: Read) -> None:
    publish(tmp_path / "hub", SST2, "sst2", sst2())
    mirror = make_inference(tmp_path / "mirror")
    with local_hub(tmp_path / "hub", []) as endpoint:
        assert read("sst2", endpoint, FAIRTUNE_MIRROR=str(mirror))["source"].startswith("hub nyu-mll/glue")
        make_sst2(mirror)
        assert read("sst2", endpoint, FAIRTUNE_MIRROR=str(mirror))["source"].startswith("local mirror; test split")


def test_every_kind_of_task_is_the_same_from_hub_and_mirror(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a validation split (imdb, ag_news), with a labelled test (mrpc), on a translation; and a test that is secret."""
    names = ["imdb", "ag_news", "mrpc", "qnli", "mnli/mismatched", "xnli/de/translate-train", "cola"]
    mirror, root = tmp_path / "mirror", tmp_path / "hub"
    for task in (task for task in DEFINITIONS if task.name in names):
        make_task(mirror, task)
        splits = {split: read_split(mirror, data.folder, split) for data, split in task.places().values()}
        if task.data == COLA:
            splits["test"] = [{"sentence": f"test {i}", "label": -1} for i in range(9)]
        if task.name == "imdb":
            splits["unsupervised"] = [{"text": "unlabelled", "label": -1}]
        publish(root, task.data, task.data.config, splits)
    with local_hub(root, []) as endpoint:
        found = read(" ".join(names), endpoint)
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(mirror))
    for name in names:
        assert "error" not in found[name], found[name]
        assert found[name]["fingerprint"] == load_task(name).fingerprint, name
    assert found["cola"]["source"].startswith("hub nyu-mll/glue (cola) at bcdcba79; halves of the validation split")
    assert found["imdb"]["source"].startswith("hub stanfordnlp/imdb (plain_text) at e6281661; test split")
    assert found["mrpc"]["rows"] == {"train": 60, "validation": 60, "test": 60}
