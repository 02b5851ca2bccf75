"""Maps read back from a run: the passes that count, the arrays as they were, clear words for damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.made_maps import STEPS, made_run

from fairtune.analysis.maps import map_passes, read_maps, seeds_with_maps, units_and_scores
from fairtune.core.errors import LedgerError
from fairtune.core.grid import Grid
from fairtune.ledger.events import EventLog, counted_events
from fairtune.ledger.records import write_arrays


def test_passes_are_read_in_order_with_their_figures(tmp_path: Path) -> None:
    passes = map_passes(counted_events(made_run(tmp_path).events))
    assert [(one.step, one.epoch, one.units) for one in passes] == [(5, 1, 8), (10, 2, 7), (15, 3, 5)]
    assert passes[0].use == 0.0
    assert passes[-1].units_at_start == 8
    assert passes[-1].parameters == 22_000_000 + 5 * 388
    assert not passes[-1].watches_only
    assert map_passes(counted_events(made_run(tmp_path, "observer", alpha=0).events))[0].watches_only


def test_a_map_is_what_was_recorded(tmp_path: Path) -> None:
    grid = Grid(4, 3, "hexagonal")
    maps = read_maps(made_run(tmp_path, grid=grid, classes=("a", "b", "c")))
    assert len(maps) == 3
    assert maps[-1].grid == grid
    assert maps[-1].classes == ("a", "b", "c")
    assert maps[-1].prototypes.shape == (12, 7)
    assert maps[-1].units.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert maps[-1].removed.tolist() == [4, 6]
    np.testing.assert_array_equal(maps[-1].hits == 0, maps[-1].labels == -1)


def test_what_was_lost_and_done_again_counts_once(tmp_path: Path) -> None:
    folder = made_run(tmp_path, passes=2)
    log = EventLog(folder.events)
    log.write("resumed", 2 * STEPS)
    log.close()
    assert [one.step for one in map_passes(counted_events(folder.events))] == [STEPS]
    assert len(read_maps(folder)) == 1


def test_a_score_goes_with_the_units_of_the_last_pass_until_then(tmp_path: Path) -> None:
    folder = made_run(tmp_path)
    log = EventLog(folder.events)
    log.write("evaluation", 2, split="validation", step=2, epoch=0, accuracy=0.6)
    log.write("evaluation", 12, split="validation", step=12, epoch=2, accuracy=0.75)
    log.write("evaluation", 20, split="test", step=15, epoch=3, accuracy=0.5)
    log.close()
    found = units_and_scores(counted_events(folder.events), "accuracy")
    assert [(one.step, one.units) for one in found] == [(2, 8), (5, 8), (10, 7), (12, 7), (15, 5)]


def test_a_run_without_maps_has_none_and_the_study_knows_who_has(tmp_path: Path) -> None:
    plain = made_run(tmp_path, "baseline", maps=False)
    made_run(tmp_path, "bpsom", seed=1)
    made_run(tmp_path, "bpsom", seed=0)
    assert read_maps(plain) == []
    assert map_passes(counted_events(plain.events)) == []
    assert units_and_scores(counted_events(plain.events), "accuracy") == []
    assert seeds_with_maps(plain) == {"bpsom": [0, 1]}


def test_arrays_of_another_shape_are_reported_with_their_step(tmp_path: Path) -> None:
    folder = made_run(tmp_path)
    kept = read_maps(folder)[0]
    arrays = {name: getattr(kept, name) for name in ("prototypes", "labels", "reliability", "counts", "u_matrix")}
    arrays |= {name: getattr(kept, name) for name in ("units", "mean", "std", "histogram", "removed")}
    write_arrays(folder, "bpsom", 10, arrays | {"labels": kept.labels[:3]})
    with pytest.raises(LedgerError, match=r"the map recorded at step 10 is damaged \(labels is \[3\], not \[30\]\)"):
        read_maps(folder)
    write_arrays(folder, "bpsom", 10, {name: arrays[name] for name in arrays if name != "counts"})
    with pytest.raises(LedgerError, match="it lacks 'counts'"):
        read_maps(folder)
    write_arrays(folder, "bpsom", 10, arrays | {"labels": np.full_like(kept.labels, 7)})
    with pytest.raises(LedgerError, match="labels are not all of -1 to 1"):
        read_maps(folder)


@pytest.mark.parametrize("damage", [b"", b"\x10\x00", None])
def test_a_damaged_or_missing_file_is_reported(tmp_path: Path, damage: bytes | None) -> None:
    folder = made_run(tmp_path)
    path = folder.records / "bpsom-000000010.safetensors"
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(LedgerError, match="what bpsom recorded at step 10 cannot be read"):
        read_maps(folder)
