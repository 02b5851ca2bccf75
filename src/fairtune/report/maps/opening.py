"""One run's maps from its folder, or clear words why there are none."""

from __future__ import annotations

from pathlib import Path

from fairtune.analysis.maps import map_passes, read_maps, seeds_with_maps, units_and_scores
from fairtune.core.errors import LedgerError, one_of
from fairtune.ledger.events import counted_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import DAMAGED, run_state
from fairtune.ledger.studies import find_folder, read_study
from fairtune.report.maps.run_page import RunPage
from fairtune.report.maps.section import RunMaps


def open_run(run: str | Path, runs: Path) -> tuple[RunFolder, RunPage]:
    """Args:
        run: its folder, or `study/arm/seed-n`.
        runs: the folder that keeps the runs.

    Raises:
        LedgerError: there is no such run, it has no maps, or they are damaged.
    """
    folder = find_folder(run, runs)
    study, state = folder.path.parent.parent, run_state(folder)
    name = f"{study.name}/{folder.name}"
    if state.status == DAMAGED:
        raise LedgerError(
            f"run {name} is not what it was when it was written: {state.problem}. Move its folder away and run the study again."
        )
    events = counted_events(folder.events)
    passes = map_passes(events)
    if not passes:
        raise LedgerError(_without(folder, name, state.status))
    metric = str(state.result.get("metric") or read_study(study)["task"]["metric"])
    told = RunMaps(folder.arm, folder.seed, state.status, tuple(passes), tuple(units_and_scores(events, metric)))
    return folder, RunPage(name, told, tuple(read_maps(folder)), metric, state.result.get("best_step"))


def _without(folder: RunFolder, name: str, status: str) -> str:
    others = [f"{arm} (seed {', '.join(map(str, seeds))})" for arm, seeds in seeds_with_maps(folder).items()]
    there = f"arms of this study with maps: {one_of(others)}" if others else "no arm of this study has any"
    why = "" if status == "finished" else f" so far (it is {status}; a map is recorded after each labelling pass)"
    return f"run {name} recorded no maps{why}; {there}. Maps come with the method bpsom (`fairtune methods bpsom`)."
