"""`fairtune track`: send a study's ledger to trackers, during or after its runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtune.cli.command import FAILED_RUN, Runs, print_note, print_text, report_errors
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.settings.track import TRACKERS, Track

if TYPE_CHECKING:
    from fairtune.monitor.trackers.sync import StudySource, TrackerSync

EVERY = 15.0
StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study.", show_default=False)]
To = Annotated[
    str, typer.Option("--to", metavar="A,B", help=f"Where to: {', '.join(TRACKERS)}; several with commas.", show_default=False)
]  # fmt: skip
Follow = Annotated[
    bool, typer.Option("--follow", help="Go on sending what is new until the study has ended, or Ctrl-C.")
]
Folder = Annotated[
    str | None,
    typer.Option("-o", "--folder", metavar="FOLDER", help="Folder of TensorBoard's files, and of W&B's.", show_default=False),
]  # fmt: skip
Uri = Annotated[
    str | None, typer.Option("--uri", metavar="URI", help="MLflow's tracking URI, such as sqlite:///mlflow.db.")
]
Project = Annotated[
    str | None,
    typer.Option("--project", metavar="NAME", help="Project, or MLflow's experiment; else the study's name."),
]
Entity = Annotated[str | None, typer.Option("--entity", metavar="NAME", help="Team or user of W&B.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Write W&B's files, for `wandb sync`; nothing leaves this machine.")
]


@report_errors
def track(
    study: StudyName,
    to: To,
    runs: Runs = Path("runs"),
    follow: Follow = False,
    folder: Folder = None,
    uri: Uri = None,
    project: Project = None,
    entity: Entity = None,
    offline: Offline = False,
) -> None:
    """Send a study to TensorBoard, MLflow, W&B or trackio: one row per arm, its runs below; again for what is new."""
    wanted = read_trackers(to, {"folder": folder, "uri": uri, "project": project, "entity": entity, "offline": offline})
    from fairtune.ledger.folders import find_study
    from fairtune.monitor.trackers.base import make_tracker
    from fairtune.monitor.trackers.sync import StudySource, TrackerSync

    runs, study = find_study(study, runs)
    source = StudySource(runs, study)
    syncs = {name: TrackerSync(source, make_tracker(name, wanted, study)) for name in wanted.names}
    try:
        failed = _sync(source, syncs)
        while follow and not failed and _is_open(source):
            time.sleep(EVERY)
            failed = _sync(source, syncs, quiet=True)
    finally:
        for sync in syncs.values():
            sync.tracker.close()
    if failed:
        raise typer.Exit(FAILED_RUN)


def _sync(source: StudySource, syncs: dict[str, TrackerSync], quiet: bool = False) -> bool:
    """Bring all trackers up to date; whether one could not be."""
    from fairtune.monitor.trackers.background import problem_text

    now, failed = source.read(), False
    for name, sync in syncs.items():
        try:
            count = sync.sync(now)
        except Exception as error:  # whatever a server or somebody's library comes up with
            print_note(f"fairtune: {name}: {problem_text(error)}")
            failed = True
            continue
        if not quiet:
            print_text(f"{name}: {count} -> {sync.tracker.place}")
        elif count.arms or count.runs:
            print_text(f"{name}: {count}")
    return failed


def _is_open(source: StudySource) -> bool:
    return source.builder.brief(source.study).state not in ("finished", "unreadable")


def read_trackers(to: str, options: dict[str, Any]) -> Track:
    """The trackers that are named, with the options that each of them has.

    Raises:
        FairtuneError: there is no such tracker, or an option that none of them has.
    """
    names = list(dict.fromkeys(name.strip() for name in to.split(",") if name.strip()))
    unknown = [name for name in names if name not in TRACKERS]
    if unknown or not names:
        found = unknown[0] if unknown else to
        raise FairtuneError(f"--to: no tracker '{found}'; there are: {one_of(TRACKERS)}.{nearest(found, TRACKERS)}")
    given = {name: value for name, value in options.items() if value not in (None, False)}
    fields = {name: own.annotation for name, own in Track.model_fields.items() if name in names}
    known = {name: _fields_of(annotation) for name, annotation in fields.items()}
    for option in given:
        if not any(option in own for own in known.values()):
            raise FairtuneError(f"--{option} is not an option of {one_of(names)}; leave it out.")
    return Track.model_validate({n: {k: v for k, v in given.items() if k in own} for n, own in known.items()})


def _fields_of(annotation: Any) -> set[str]:
    (section,) = (part for part in annotation.__args__ if part is not type(None))
    return set(section.model_fields)
