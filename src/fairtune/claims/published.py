"""Published claims: what one file of them says, read and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.settings.claims import SPEED, SPREAD, Claim, ParameterShare
from fairtune.settings.file_task import MetricName
from fairtune.settings.values import LONGEST_TEXT, NAME, Number, Section, Whole
from fairtune.study.allowed import spelt_out
from fairtune.study.messages import problems_of
from fairtune.study.problems import StudyError
from fairtune.study.source import read_source

FOLDER = Path(__file__).parent
PUBLISHED, LAPTOP = "published", "laptop"
AVERAGE = "average"
MOST_CLAIMS, MOST_PARAMETERS, LARGEST_SPEEDUP = 200, 10**13, 10_000
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Id = Annotated[str, Field(pattern=NAME, max_length=80)]


class ClaimTrial(Section):
    """A study whose runs answer a claim, if there are any."""

    study: Text = Field(description="The study's name in the ledger.")
    file: Text = Field(description="The study file that comes with fairtune.")
    profile: Text | None = Field(None, description="The profile that it is run with.")
    arms: tuple[Id, ...] = Field((), max_length=50, description="The arms that have to be run; none is all.")
    size: Literal["published", "laptop"] = Field(
        description="Whether it is the published experiment, or a smaller one that says something about the direction only."
    )
    about: Text = Field(description="Model and number of examples, in a few words.")
    claims: tuple[Claim, ...] = Field(min_length=1, max_length=20, description="What is asked of it; all must hold.")

    @property
    def timed(self) -> bool:
        """Whether a timing experiment answers it, for which nothing has to be trained."""
        return all(claim.kind in (SPEED, SPREAD) for claim in self.claims)

    @property
    def command(self) -> str:
        """What runs it."""
        profile = f" --profile {self.profile}" if self.profile else ""
        arms = f" --arms {','.join(self.arms)}" if self.arms else ""
        return f"fairtune {'time' if self.timed else 'run'} {self.file}{profile}{arms}"


class CountedWork(Section):
    """What was counted on a network of the model's shape; a test counts it again."""

    model: Text
    arm: Id
    frozen: Whole = Field(ge=0, le=MOST_PARAMETERS, description="Parameters that are not trained.")
    total: Whole = Field(ge=1, le=MOST_PARAMETERS, description="Parameters of the model.")
    allowed: Number = Field(gt=0, le=LARGEST_SPEEDUP, description="The highest speed-up that matrix products allow.")
    claim: Claim = Field(description="What is claimed of either.")

    @property
    def command(self) -> str:
        """What counts it again."""
        if self.claim.faster is not None:
            return f"fairtune time --check {self.claim.faster} --model {self.model} --arm {self.arm}"
        return f"fairtune inspect {self.model} --method {self.arm}"


class BandModel(Section):
    """A model and a task for which figures of healthy baselines are published."""

    model: Text
    task: Text


class BandCheck(Section):
    """A published baseline beside what healthy ones reach."""

    figure: ParameterShare = Field(description="The baseline's figure, in percent.")
    metric: MetricName = "accuracy"
    examples: Whole = Field(ge=1, le=10**9, description="Examples that it was measured on.")
    like: tuple[BandModel, ...] = Field(min_length=1, max_length=10, description="Whose bands apply.")

    @property
    def value(self) -> float:
        return float(self.figure[:-1]) / 100


class PublishedClaim(Section):
    """One statement that somebody published, with what it rested on and what could answer it."""

    id: Id
    text: Text = Field(description="The claim in plain words.")
    claimed: Text = Field(description="Its figures, as published.")
    evidence: Text = Field(description="How it was obtained, and what keeps it from being shown that way.")
    trials: tuple[ClaimTrial, ...] = Field((), max_length=20)
    over: Literal["each", "average"] = Field(
        "each",
        description="Whether it has to hold in each trial of a size, or is about their average, which one trial cannot refute.",
    )
    counted: CountedWork | None = None
    band: BandCheck | None = None
    untried: Text = Field(description="What no shipped trial asks.")

    def trials_of(self, size: str) -> list[ClaimTrial]:
        return [trial for trial in self.trials if trial.size == size]


class ClaimFile(Section):
    """The claims of one source."""

    title: Text
    source: Text = Field(description="Where they were published, and what was known of how.")
    claims: tuple[PublishedClaim, ...] = Field(min_length=1, max_length=MOST_CLAIMS)

    @model_validator(mode="after")
    def _ids_once(self) -> Self:
        ids = [claim.id for claim in self.claims]
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice:
            raise ValueError(f"two claims have the id {twice}")
        return self


def claim_sources() -> list[str]:
    """The names of the files of claims that come with fairtune."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def load_claims(only: str | None = None) -> dict[str, ClaimFile]:
    """The published claims by the name of their source.

    Args:
        only: one source, such as `oelm`, or one claim of it, such as `oelm/xnli-speed`; None is all.

    Raises:
        FairtuneError: there is no such source or claim.
    """
    if only is None:
        return {name: read_claims(FOLDER / f"{name}.yaml") for name in claim_sources()}
    source, _, wanted = only.partition("/")
    known = claim_sources()
    if source not in known:
        raise FairtuneError(f"--only: found '{only}'; sources of claims: {one_of(known)}.{nearest(source, known)}")
    found = read_claims(FOLDER / f"{source}.yaml")
    if not wanted:
        return {source: found}
    chosen = tuple(claim for claim in found.claims if claim.id == wanted)
    if not chosen:
        ids = [f"{source}/{claim.id}" for claim in found.claims]
        raise FairtuneError(f"--only: found '{only}'; claims of {source}: {one_of(ids)}.{nearest(only, ids)}")
    return {source: found.model_copy(update={"claims": chosen})}


def read_claims(file: Path) -> ClaimFile:
    """One file of claims.

    Raises:
        FairtuneError: it cannot be read, or says something that is not allowed.
    """
    written = read_source(file, "claims")
    try:
        return ClaimFile.model_validate(written.data)
    except ValidationError as error:
        schema = spelt_out(ClaimFile.model_json_schema())
        raise StudyError(problems_of(error.errors(), written, schema)) from None
