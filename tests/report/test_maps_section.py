"""The report's section about maps: figures over seeds, maps of one seed, and nothing of it without maps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from made_ledger import ArmSpec, MadeLedger, make_study
from tests.made_maps import record_maps

from fairtune.core.files import read_json, write_json
from fairtune.core.grid import Grid
from fairtune.report.content import ReportContent
from fairtune.report.sections.maps import SECTION
from fairtune.report.sections.maps.content import MapsSection, read_map_section
from fairtune.report.sections.maps.pictures import map_figures
from fairtune.report.writer import make_content, write_report

BPSOM = [{"bpsom": {}}]
REMOVED = (((), (1,)), ((), (1, 2, 3)), ((), ()))
"""By seed."""
SMALL = Grid(4, 3)


def made_maps(runs: Path) -> MadeLedger:
    """A baseline, an arm that prunes differently by seed, an observer, and an arm whose only run broke after a pass."""
    arms = {
        "baseline": ArmSpec([336, 338, 334]),
        "bpsom": ArmSpec([343, 341, 335], methods=BPSOM),
        "observer": ArmSpec([340, 338], methods=[{"bpsom": {"alpha": 0.0, "prune": None}}]),
        "broken": ArmSpec(["it broke"], methods=BPSOM),
    }
    made = make_study(runs, arms)
    for seed in range(3):
        record_maps(made.folder("bpsom", seed), passes=2, removed=REMOVED[seed], seed=seed, grid=SMALL)
    for seed in range(2):
        record_maps(made.folder("observer", seed), passes=2, removed=(), alpha=0, seed=seed, grid=SMALL)
    record_maps(made.folder("broken", 0), passes=1, removed=(), grid=SMALL)
    result = made.folder("bpsom", 0).result
    write_json(result, {**(read_json(result) or {}), "best_step": 5})
    return made


@pytest.fixture(scope="module")
def maps_ledger(tmp_path_factory: pytest.TempPathFactory) -> MadeLedger:
    return made_maps(tmp_path_factory.mktemp("maps") / "runs")


@pytest.fixture(scope="module")
def maps(maps_ledger: MadeLedger) -> MapsSection:
    found = read_map_section(maps_ledger.results())
    assert found is not None
    return found


@pytest.fixture(scope="module")
def files(maps_ledger: MadeLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(maps_ledger.results()).items()}


def test_figures_are_over_finished_seeds_at_their_last_pass(maps: MapsSection) -> None:
    assert [(arm.arm, arm.n) for arm in maps.arms] == [("bpsom", 3), ("observer", 2), ("broken", 0)]
    units = maps.arms[0].figures["units"]
    assert units is not None
    assert (units.n, units.median, units.low, units.high) == (3, 7, 5, 8)
    seconds = maps.arms[0].figures["seconds"]
    assert seconds is not None
    assert seconds.median == pytest.approx(1.55), "the median over a run's passes"
    assert set(maps.arms[2].figures.values()) == {None}
    assert maps.pruned


def test_the_units_of_the_scored_model_are_those_of_its_step(maps: MapsSection) -> None:
    best = maps.arms[0].figures["best_units"]
    assert best is not None
    assert (best.n, best.median) == (1, 8), "only seed 0 says which step was best: before anything was removed"


def test_the_map_is_of_the_first_finished_seed_and_says_so(maps: MapsSection, files: dict[str, str]) -> None:
    shown = maps.arms[0].shown
    assert shown is not None
    assert (shown.seed, shown.when, shown.step, shown.best_step) == (0, "epoch 2", 10, 5)
    for kind in ("html", "markdown"):
        output = files[kind].replace("\u00a0", " ")
        assert "Seed 0 after its last labelling pass, epoch 2 (step 10)." in output
        assert "The weights that are scored are of step 5, epoch 1." in output
        assert "Each map is of one seed, an illustration" in output
        assert "In observer the map only watches" in output
        assert "No map is shown: none of its runs is finished." in output


def test_pictures_stand_inside_the_page(files: dict[str, str]) -> None:
    page = files["html"]
    images = re.findall(r'<img src="([^"]*)" alt="[^"]+"', page)
    assert len(images) == 2 * 6
    assert all(image.startswith("data:image/png;base64,") for image in images)
    assert "img-src data:" in page
    assert 'aria-label="SOM use over training by arm"' in page
    assert 'aria-label="Validation score by hidden units left"' in page
    assert len(page) < 400_000


def test_table_cells_have_median_and_range(files: dict[str, str]) -> None:
    line = next(line for line in files["markdown"].splitlines() if line.startswith("| bpsom | 3 |") and " of 8" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[4] == "7 of 8 (5 to 8)"
    assert cells[5] == "8"
    assert cells[8] == "0.450 (0.450 to 0.450)"


def test_json_has_the_passes_and_no_arrays(files: dict[str, str]) -> None:
    answer = json.loads(files["json"])["maps"]
    assert [run["passes"][-1]["units"] for run in answer["runs"]][:1] == [7]
    assert answer["arms"][0]["shown"]["records"] == []
    assert "prototypes" not in files["json"]


def test_same_maps_same_bytes(maps: MapsSection, files: dict[str, str]) -> None:
    again = map_figures(replace(maps, arms=maps.arms[:1]), "accuracy")
    assert all(drawn in files["html"] for drawn in (again.use, again.pruning, *astuple(again.arms["bpsom"])))


def test_damage_leaves_the_figures_and_says_which_map_is_missing(tmp_path: Path) -> None:
    made = made_maps(tmp_path / "runs")
    (made.folder("bpsom", 0).records / "bpsom-000000010.safetensors").write_bytes(b"")
    content = make_content(made.results())
    found = content.sections["maps"]
    assert found.arms[0].n == 3
    assert found.arms[0].shown is None
    output = "\n".join(SECTION.markdown(found, content))
    assert r"what seed 0 recorded cannot be read; \`fairtune som made/bpsom/seed-0\` says why" in output
    assert str(tmp_path) not in output


def test_where_nothing_is_removed_no_curve_is_drawn(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([330]), "bpsom": ArmSpec([331], methods=BPSOM)})
    record_maps(made.folder("bpsom", 0), removed=())
    found = read_map_section(made.results())
    assert found is not None
    assert not found.pruned
    assert map_figures(replace(found, arms=()), "accuracy").pruning is None


def test_without_maps_nothing_is_said(content: ReportContent, written: dict[str, Path]) -> None:
    assert content.sections["maps"] is None
    for path in written.values():
        assert "SOM" not in path.read_text()
    assert "img-src" not in written["html"].read_text()
