"""The section `track` of a study: where its ledger is sent while it runs. Nothing here changes what is trained."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from fairtune.settings.values import LONGEST_NAME, Place, Section, each_once, listed, refuse

Tracker = Literal["tensorboard", "mlflow", "wandb", "trackio"]
TRACKERS: tuple[str, ...] = get_args(Tracker)
ProjectName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="a name")]


class TensorboardTracker(Section):
    """Event files that TensorBoard reads."""

    folder: Place = Field(
        "tensorboard", description="The folder of TensorBoard's files; each study has a folder in it."
    )


class MlflowTracker(Section):
    """Runs of an MLflow experiment."""

    uri: Annotated[str, Field(min_length=1, title="an address")] | None = Field(
        None,
        description="MLflow's tracking URI: a server, or a database such as sqlite:///mlflow.db; null is MLflow's own choice.",
    )
    project: ProjectName | None = Field(None, description="MLflow's experiment; null is the study's name.")


class WandbTracker(Section):
    """Runs of a Weights & Biases project."""

    project: ProjectName | None = Field(None, description="The W&B project; null is the study's name.")
    entity: ProjectName | None = Field(None, description="The W&B team or user; null is your own.")
    offline: bool = Field(
        False, strict=True, description="Write files that `wandb sync` sends later; nothing leaves this machine."
    )
    folder: Place | None = Field(None, description="The folder in which W&B keeps its files; null is where you are.")


class TrackioTracker(Section):
    """Runs of a trackio project, on this machine."""

    project: ProjectName | None = Field(None, description="The trackio project; null is the study's name.")


def _as_sections(value: Any) -> Any:
    """Names of trackers as sections that are as they come."""
    names = listed(value)
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return {name: {} for name in each_once(tuple(names))} or refuse()
    return {name: {} if own is None else own for name, own in value.items()} if isinstance(value, dict) else value


class Track(Section):
    """Where a study's ledger is sent while it runs."""

    tensorboard: TensorboardTracker | None = Field(None, description="Write files for TensorBoard.")
    mlflow: MlflowTracker | None = Field(None, description="Send to MLflow.")
    wandb: WandbTracker | None = Field(None, description="Send to Weights & Biases.")
    trackio: TrackioTracker | None = Field(None, description="Write into trackio's database on this machine.")

    @property
    def names(self) -> list[str]:
        """The trackers that are wanted."""
        return [name for name in TRACKERS if getattr(self, name) is not None]

    def options(self, name: str) -> list[str]:
        """What `fairtune track` takes to send to a tracker as is wanted here."""
        found = ["--to", name]
        for option, value in getattr(self, name).model_dump(exclude_defaults=True).items():
            found += [f"--{option}"] if value is True else [f"--{option}", str(value)]
        return found


_Names = Annotated[
    list[Tracker], Field(min_length=1, title="a list of trackers", json_schema_extra={"uniqueItems": True})
]
Tracked = Annotated[Track, BeforeValidator(_as_sections, _Names | Tracker | Track)]
