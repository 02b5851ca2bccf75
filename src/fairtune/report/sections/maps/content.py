"""What a report says about self-organising maps: figures over seeds, the maps of one seed per arm, and words for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from fairtune.analysis.maps import MapPass, MapRecord, UnitsScore, map_passes, read_maps, units_and_scores
from fairtune.analysis.results import LedgerRun, Results
from fairtune.core.errors import LedgerError
from fairtune.core.numbers import DASH, plural, share, significant, whole
from fairtune.report.content import RunSpread, spread_of


def pass_label(one: MapPass, passes: Sequence[MapPass]) -> str:
    """`epoch 3`, or `step 150` for a run that does not label its map once per epoch."""
    epochs = [other.epoch for other in passes]
    once = 0 not in epochs and len(set(epochs)) == len(epochs)
    return f"epoch {one.epoch}" if once else f"step {one.step:,}"


def used(one: MapPass) -> str:
    """`SOM use 76.6 %`; of a map that only watches it would have been."""
    percentage = DASH if one.use is None else f"{100 * one.use:.1f} %"
    return f"would use {percentage}" if one.watches_only else f"SOM use {percentage}"


def units_left(one: MapPass) -> str:
    """`, 12 units`, to stand at a line's end."""
    return "" if one.units is None else f", {plural(one.units, 'unit')}"


def threshold_text(one: MapPass) -> str:
    return DASH if one.threshold is None else f"{100 * one.threshold:g} %"


@dataclass(frozen=True)
class MapColumn:
    """One figure of the tables.

    Args:
        name: of the field of `MapPass`; `best_units` is the report's own.
        narrow: the heading in two lines, for a terminal.
    """

    name: str
    heading: str
    narrow: str
    show: Callable[[float | None], str]


def units(value: float | None) -> str:
    """A count; the median of two may lie between two of them."""
    return whole(value) if value is None or value == int(value) else f"{value:,.1f}"


COLUMNS = (
    MapColumn("use", "SOM use (%)", "SOM\nuse %", share),
    MapColumn("mean_reliability", "mean reliability (%)", "mean\nreliability %", share),
    MapColumn("units", "units left", "units\nleft", units),
    MapColumn("parameters", "parameters left", "parameters\nleft", whole),
    MapColumn("labelled", "cells labelled (%)", "cells\nlabelled %", share),
    MapColumn("quantisation_error", "quantisation error", "quantis.\nerror", significant),
    MapColumn("topographic_error", "topographic error", "topogr.\nerror", significant),
    MapColumn("seconds", "labelling (s per pass)", "labelling\ns per pass", significant),
)
BEST_UNITS = MapColumn("best_units", "units in the scored model", "", units)
REPORT_COLUMNS = (*COLUMNS[:3], BEST_UNITS, *COLUMNS[3:])


@dataclass(frozen=True)
class RunMaps:
    """The labelling passes of one run, and its validation scores with the units left."""

    arm: str
    seed: int
    status: str
    passes: tuple[MapPass, ...]
    scores: tuple[UnitsScore, ...]

    @property
    def watches_only(self) -> bool:
        return self.passes[-1].watches_only


@dataclass(frozen=True)
class ShownMaps:
    """The maps of one run.

    Args:
        when: the last labelling pass.
        best_step: of the weights that were scored on the test split.
        records: every pass of the run; left out of JSON.
    """

    seed: int
    when: str
    step: int
    best_step: int | None
    best_when: str | None
    records: tuple[MapRecord, ...]


@dataclass(frozen=True)
class ArmMaps:
    """One arm's row, and the maps of its first finished seed.

    Args:
        figures: at the last labelling pass, over finished seeds; by the name of the column.
        problem: why there is no map to show.
    """

    arm: str
    n: int
    watches_only: bool
    units_at_start: int | None
    figures: dict[str, RunSpread | None]
    shown: ShownMaps | None
    problem: str | None


@dataclass(frozen=True)
class MapsSection:
    """All arms that recorded maps.

    Args:
        places: of the arms among all arms of the study, which fixes their colours.
    """

    arms: tuple[ArmMaps, ...]
    runs: tuple[RunMaps, ...]
    places: dict[str, int]
    notes: tuple[str, ...]

    @property
    def pruned(self) -> bool:
        """Whether any run lost a unit."""
        return any(one.units != one.units_at_start for run in self.runs for one in run.passes)

    def without_maps(self) -> MapsSection:
        """The same without the maps themselves, which are many numbers and stand in the runs' folders."""
        arms = [replace(arm, shown=arm.shown and replace(arm.shown, records=())) for arm in self.arms]
        return replace(self, arms=tuple(arms))


def read_map_section(results: Results) -> MapsSection | None:
    """Everything about maps; None where no run recorded any."""
    if results.kind != "classify":
        return None
    begun = [run for run in results.runs if run.begun]
    runs = {(run.arm, run.seed): found for run in begun if (found := run_maps(run, results.metric)) is not None}
    if not runs:
        return None
    named = [arm for arm in results.arms if any(run.arm == arm for run in runs.values())]
    arms = tuple(_arm(results, arm, [run for run in runs.values() if run.arm == arm]) for arm in named)
    return MapsSection(arms, tuple(runs.values()), {arm: results.arms.index(arm) for arm in named}, _notes(arms, runs))


def run_maps(run: LedgerRun, metric: str) -> RunMaps | None:
    passes = map_passes(run.events)
    if not passes:
        return None
    return RunMaps(run.arm, run.seed, run.status, tuple(passes), tuple(units_and_scores(run.events, metric)))


def best_pass(passes: Sequence[MapPass], best_step: int | None) -> MapPass | None:
    """The last labelling pass before the weights that were kept; None where they were kept before any."""
    before = [one for one in passes if best_step is not None and one.step <= best_step]
    return before[-1] if before else None


def _arm(results: Results, arm: str, runs: list[RunMaps]) -> ArmMaps:
    ended = [run for run in runs if run.status == "finished"]
    best = {run.seed: run.result.get("best_step") for run in results.finished(arm)}
    figures = {
        column.name: spread_of(getattr(run.passes[-1], column.name) for run in ended)
        for column in COLUMNS
        if column.name != "seconds"
    }
    figures["seconds"] = spread_of(_seconds(run) for run in ended)
    figures["best_units"] = spread_of(_best_units(run, best.get(run.seed)) for run in ended)
    shown, problem = _maps_to_show(results, ended[0]) if ended else (None, "none of its runs is finished")
    last = runs[0].passes[-1]
    return ArmMaps(arm, len(ended), runs[0].watches_only, last.units_at_start, figures, shown, problem)


def _seconds(run: RunMaps) -> float | None:
    known = [one.seconds for one in run.passes if one.seconds is not None]
    return median(known) if known else None


def _best_units(run: RunMaps, best_step: int | None) -> int | None:
    if best_step is None:
        return None
    found = best_pass(run.passes, best_step)
    return run.passes[0].units_at_start if found is None else found.units


def _maps_to_show(results: Results, run: RunMaps) -> tuple[ShownMaps | None, str | None]:
    shown_run = next(one for one in results.finished(run.arm) if one.seed == run.seed)
    try:
        records = tuple(read_maps(shown_run.folder))
    except LedgerError:  # its message names a folder of this machine, which a report does not
        name = f"{results.study}/{run.arm}/seed-{run.seed}"
        return None, f"what seed {run.seed} recorded cannot be read; `fairtune som {name}` says why"
    last, best_step = run.passes[-1], shown_run.result.get("best_step")
    best = best_pass(run.passes, best_step)
    best_when = pass_label(best, run.passes) if best is not None and best.step == best_step else None
    return ShownMaps(run.seed, pass_label(last, run.passes), last.step, best_step, best_when, records), None


def shown_text(arm: ArmMaps) -> str:
    """Which run and which pass a map is of, and which weights were scored."""
    shown = arm.shown
    if shown is None:
        return ""
    text = f"Seed {shown.seed} after its last labelling pass, {shown.when} (step {shown.step:,})."
    if shown.best_step is None:
        return text
    if shown.best_step == shown.step:
        return f"{text} The weights that are scored are of the same step."
    named = f", {shown.best_when}" if shown.best_when else ""
    return f"{text} The weights that are scored are of step {shown.best_step:,}{named}."


def _notes(arms: Sequence[ArmMaps], runs: dict[tuple[str, int], RunMaps]) -> tuple[str, ...]:
    thresholds = sorted({threshold_text(one) for run in runs.values() for one in run.passes})
    notes = [
        "A map lays out the activations of the hidden layer: each training example falls on the cell whose prototype is "
        "nearest, a cell has the class of most examples on it, and its reliability is their share. Only cells that are at "
        f"least {' or '.join(thresholds)} reliable pull examples of their class towards their prototype; SOM use is the "
        "share of training examples that were pulled since the labelling pass before.",
        "Each map is of one seed, an illustration: another seed lays the same classes out elsewhere. The table is over "
        "seeds: the median, with the lowest and the highest in brackets, at the last labelling pass of each run. The "
        "weights that are scored on the test split are the best on validation, which may be of an earlier step.",
    ]
    watching = [arm.arm for arm in arms if arm.watches_only]
    if watching:
        notes.append(f"In {', '.join(watching)} the map only watches: its SOM use is what would have been pulled.")
    return tuple(notes)
