"""`fairtune som`: pictures, a page and figures of a run's maps; one clear sentence where there are none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.made_maps import made_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.grid import Grid
from fairtune.report.sections.maps.pictures import Picture

PICTURES = {
    "combined.png", "labels.png", "reliability.png", "u-matrix.png", "epochs.png", "epochs.gif", "use.png",
    "pruning.png", "activations.png", "planes.png",
}  # fmt: skip


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["som", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with one run whose pictures are drawn."""
    runs = tmp_path_factory.mktemp("som") / "runs"
    made_run(runs, grid=Grid(4, 3))
    made_run(runs, "baseline", maps=False)
    return runs


@pytest.fixture(scope="module")
def answer(kept: Path) -> Any:
    return call("made/bpsom/seed-0", "--runs", kept)


def test_it_writes_every_picture_and_says_where(kept: Path, answer: Any) -> None:
    folder = kept / "made" / "bpsom" / "seed-0" / "maps"
    assert answer.exit_code == 0, answer.output
    assert {path.name for path in folder.iterdir()} == PICTURES | {"index.html"}
    assert f"Maps: {folder.resolve()}/index.html (10 pictures beside it)" in answer.output
    for name in PICTURES:
        with Image.open(folder / name) as image:
            assert min(image.size) > 200
            assert getattr(image, "n_frames", 1) == (3 if name == "epochs.gif" else 1)


def test_it_prints_the_figures_of_each_pass_in_a_hundred_columns(answer: Any) -> None:
    lines = answer.output.splitlines()
    rows = {line.split()[1]: line.split() for line in lines if re.match(r"epoch \d+ +[\d.]+ ", line)}
    assert list(rows) == ["1", "2", "3"]
    assert rows["1"][2] == "0.0"
    assert rows["3"][4:6] == ["5", "22,001,940"]
    assert rows["3"][-3:] == ["0.300", "0.0267", "1.70"]
    assert max(len(line) for line in lines if not line.startswith("Maps:")) <= 100
    text = " ".join(answer.output.split())
    assert "A rectangular map of 4 x 3 cells over 8 hidden units" in text
    assert "of step 10; units left then: 7" in text


def test_the_page_needs_nothing_from_elsewhere(kept: Path, answer: Any) -> None:  # noqa: ARG001
    page = (kept / "made" / "bpsom" / "seed-0" / "maps" / "index.html").read_text()
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(addresses) == len(PICTURES)
    assert all(re.match(r"data:image/(png|gif);base64,", address) for address in addresses)
    assert "<script" not in page
    assert "of this one seed" in page


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One picture for all, where it is the words that matter."""
    one = [Picture("combined.gif", "A map.", b"GIF")]
    monkeypatch.setattr("fairtune.report.sections.maps.run_page.pictures", lambda *_: one)


@pytest.mark.usefixtures("undrawn")
def test_json_has_passes_scores_and_files(kept: Path, tmp_path: Path) -> None:
    answer = json.loads(call(kept / "made" / "bpsom" / "seed-0", "-o", tmp_path / "out", "--json").stdout)
    assert (answer["run"], answer["status"], answer["best_step"]) == ("made/bpsom/seed-0", "finished", 10)
    assert [one["units"] for one in answer["passes"]] == [8, 7, 5]
    assert [one["units"] for one in answer["scores"]] == [8, 7, 5]
    assert set(answer["files"]) == {"combined.gif", "index.html"}
    assert all(Path(path).is_file() for path in answer["files"].values())


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_is_not_finished_shows_what_there_is(tmp_path: Path) -> None:
    made_run(tmp_path, finished=False, passes=1, grid=Grid(1, 1), units=1, removed=())
    text = " ".join(call("made/bpsom/seed-0", "--runs", tmp_path).output.split())
    assert "The run is not finished (interrupted): this is what there is so far." in text
    assert "epoch 1" in text


def test_a_run_without_maps_says_who_has_some(kept: Path) -> None:
    answer = call("made/baseline/seed-0", "--runs", kept)
    assert answer.exit_code == 2
    assert "run made/baseline/seed-0 recorded no maps; arms of this study with maps: bpsom (seed 0)." in answer.output


def test_a_run_before_its_first_pass_says_so(tmp_path: Path) -> None:
    made_run(tmp_path, finished=False, maps=False)
    answer = call("made/bpsom/seed-0", "--runs", tmp_path)
    assert answer.exit_code == 2
    assert "recorded no maps so far (it is interrupted; a map is recorded after each labelling pass)" in answer.output
    assert "no arm of this study has any" in answer.output


@pytest.mark.parametrize("run", ["made/bpsom/seed-7", "made/bpsom", "nowhere"])
def test_what_is_no_run_is_reported_with_the_runs_there_are(kept: Path, run: str) -> None:
    answer = call(run, "--runs", kept)
    assert answer.exit_code == 2
    assert f"'{run}' is not a run; runs in {kept}: made/baseline/seed-0, made/bpsom/seed-0." in answer.output


def test_damage_is_reported_and_nothing_is_written(tmp_path: Path) -> None:
    folder = made_run(tmp_path)
    (folder.records / "bpsom-000000005.safetensors").write_bytes(b"no tensors")
    answer = call(folder.path)
    assert answer.exit_code == 2
    assert "records/bpsom-000000005.safetensors was changed after the run was closed" in answer.output
    assert not (folder.path / "maps").exists()


def test_a_folder_that_cannot_be_written_is_reported(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    answer = call("made/bpsom/seed-0", "--runs", kept, "-o", tmp_path / "out")
    assert answer.exit_code == 2
    assert "cannot be written" in answer.output
    assert "Traceback" not in answer.output
