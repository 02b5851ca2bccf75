"""Runs as files, for processes on other machines: `jobs/<n>/<block>-<place>.json` in a study's folder holds one run.

A block is what one task of a cluster performs, one run after the other. Nothing here is a result: those are in the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtune.core import __version__
from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, write_sealed
from fairtune.settings.execution import Execution
from fairtune.study.plan import PROTOCOL
from fairtune.study.run_spec import RunSpec

JOBS = "jobs"


class OtherVersionError(LedgerError):
    """A run was handed in by another version of fairtune than the one that is to perform it."""


@dataclass(frozen=True, eq=False)
class Block:
    """Runs that one task of a cluster performs.

    Args:
        folder: of the submission, `<study>/jobs/<n>`.
    """

    folder: Path
    number: int
    jobs: tuple[RunSpec, ...]

    @property
    def specs(self) -> list[Path]:
        return [self.folder / f"{self.number}-{place:04}.json" for place in range(len(self.jobs))]

    @property
    def log(self) -> Path:
        return self.folder / f"{self.number}.log"


def write_blocks(home: Path, groups: Sequence[Sequence[RunSpec]], execution: Execution) -> list[Block]:
    """Put runs into files, in a folder of their own.

    Raises:
        LedgerError: they cannot be written.
    """
    about = {"fairtune": __version__, "protocol": PROTOCOL, "execution": execution.model_dump(mode="json")}
    try:
        folder = next_folder(home)
        folder.mkdir(parents=True)
        blocks = [
            # a process on a node may begin in another folder
            Block(
                folder,
                number,
                tuple(job.model_copy(update={"folder": str(Path(job.folder).resolve())}) for job in jobs),
            )
            for number, jobs in enumerate(groups)
        ]
        for block in blocks:
            for spec, job in zip(block.specs, block.jobs, strict=True):
                write_sealed(spec, {**about, "job": job.as_json()})
    except OSError as error:
        raise LedgerError(
            f"{home / JOBS}: the runs cannot be handed in ({error.strerror}); fix that or use another --runs."
        ) from None
    return blocks


def read_spec(file: Path) -> tuple[RunSpec, Execution]:
    """A run and the settings of its study's execution.

    Raises:
        OtherVersionError: another version of fairtune wrote it.
        LedgerError: it cannot be read, or is not what was written.
    """
    try:
        found = read_sealed(file)
        if (made := found["fairtune"], found["protocol"]) != (__version__, PROTOCOL):
            raise OtherVersionError(f"{file} was written by fairtune {made}, but this is fairtune {__version__}.")
        return RunSpec(**found["job"]), Execution.model_validate(found["execution"])
    except OSError as error:
        raise LedgerError(f"{file} cannot be read here ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{file} is not a run that was handed in ({error}).") from None


def next_folder(home: Path) -> Path:
    """Of a study's next submission."""
    taken = (int(path.name) for path in (home / JOBS).glob("*") if path.name.isdecimal())
    return home.resolve() / JOBS / str(1 + max(taken, default=0))
