"""The maps of one run: read from its folder, and written as pictures and a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairtune.analysis.maps import MapRecord, map_passes, read_maps, seeds_with_maps, units_and_scores
from fairtune.core.errors import LedgerError, one_of
from fairtune.core.files import write_atomically
from fairtune.core.printable import LINES, printable, with_printable_texts
from fairtune.ledger.events import counted_events
from fairtune.ledger.folders import RunFolder, find_folder
from fairtune.ledger.seals import DAMAGED, run_state
from fairtune.ledger.studies import read_study
from fairtune.report.figures.canvas import address, reduced
from fairtune.report.sections.maps.content import (
    COLUMNS,
    RunMaps,
    best_pass,
    pass_label,
)
from fairtune.report.sections.maps.pictures import Picture, pictures

HEADS = ("pass", *(column.heading for column in COLUMNS))


@dataclass(frozen=True)
class RunPage:
    """Everything about one run's maps.

    Args:
        name: study/arm/seed-n.
        metric: the study's.
        best_step: of the weights that were scored on the test split; None before there are any.
    """

    name: str
    run: RunMaps
    records: tuple[MapRecord, ...]
    metric: str
    best_step: int | None

    def rows(self) -> list[list[str]]:
        """The figures of each labelling pass, under `HEADS`."""
        passes = self.run.passes
        return [[pass_label(one, passes), *(c.show(getattr(one, c.name)) for c in COLUMNS)] for one in passes]

    def notes(self) -> list[str]:
        """What to mind, a sentence each."""
        last, grid = self.run.passes[-1], self.records[-1].grid
        notes = [
            f"A {grid.topology} map of {grid.columns} x {grid.rows} cells over {last.units_at_start} hidden units. The maps "
            f"are those of the last labelling pass, {pass_label(last, self.run.passes)} (step {last.step}), of this one seed."
        ]
        if self.run.status != "finished":
            notes.append(f"The run is not finished ({self.run.status}): this is what there is so far.")
        if self.best_step is not None and self.best_step != last.step:
            found = best_pass(self.run.passes, self.best_step)
            units = last.units_at_start if found is None else found.units
            notes.append(
                f"The weights that were scored on the test split are the best on validation, of step {self.best_step}; units "
                f"left then: {units}."
            )
        if self.run.watches_only:
            notes.append("The map only watched (alpha 0): SOM use is what would have been used.")
        return notes

    def write(self, folder: Path) -> dict[str, Path]:
        """Write all pictures and the page; returns the paths by the name of the file.

        Raises:
            LedgerError: the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            made = list(pictures(*with_printable_texts((self.run, self.records, self.metric))))
            files = {picture.name: picture.content for picture in made} | {"index.html": self._page(made).encode()}
            for name, content in files.items():
                write_atomically(folder / name, content)
        except OSError as error:
            raise LedgerError(f"-o {folder}: cannot be written ({error.strerror}); choose another folder.") from None
        return {name: folder / name for name in files}

    def _page(self, made: Sequence[Picture]) -> str:
        environment = Environment(
            loader=PackageLoader("fairtune.report.sections.maps", "."), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        page = environment.get_template("page.html.j2").render(
            name=self.name, notes=self.notes(), heads=HEADS, rows=self.rows(), pictures=made, address=_address
        )
        return printable(page, LINES)


def _address(picture: Picture) -> str:
    return address(reduced(picture.content) if picture.format == "png" else picture.content, picture.format)


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
    found = RunMaps(folder.arm, folder.seed, state.status, tuple(passes), tuple(units_and_scores(events, metric)))
    return folder, RunPage(name, found, tuple(read_maps(folder)), metric, state.result.get("best_step"))


def _without(folder: RunFolder, name: str, status: str) -> str:
    others = [f"{arm} (seed {', '.join(map(str, seeds))})" for arm, seeds in seeds_with_maps(folder).items()]
    there = f"arms of this study with maps: {one_of(others)}" if others else "no arm of this study has any"
    why = "" if status == "finished" else f" so far (it is {status}; a map is recorded after each labelling pass)"
    return f"run {name} recorded no maps{why}; {there}. Maps come with the method bpsom (`fairtune methods bpsom`)."
