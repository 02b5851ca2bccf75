"""The runs folder: its studies and their runs, where everything about a run is, and the lock that one process holds there."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError, nearest, one_of
from fairtune.core.files import read_json, read_sealed, remove_leftovers, write_sealed
from fairtune.core.locks import LEASE, is_leased, is_locked, wait_for_lock

TRIALS = "tuning"
"""The folder of a study in which the study of its trials is."""
SEED_FOLDER = re.compile(r"seed-(0|[1-9][0-9]*)")
MOMENT = 0.1
"""Seconds for which `is_locked` may seem to hold a lock that it only asks about; that is no reason to turn anyone away."""


class _Inside:
    """Something in a run's folder, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, _: type[RunFolder]) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """runs/<study>/<arm>/seed-<n>/

    Attributes:
        samples: what a language model writes when it continues fixed prompts.
        timing: the run's own times, in the form in which such times are published.
        records: arrays that methods record while they train; the events say which of them count.
        manifest: sums of a finished run's files, see `fairtune.ledger.seals`.
        checkpoint: saved states, from a run's beginning until its result is on the disk.
        adapter: of a PEFT arm, the library's adapter folder; `model` has the adapters folded in.
    """

    path: Path

    plan = _Inside("plan.json")
    environment = _Inside("environment.json")
    card = _Inside("card.json")
    events = _Inside("events.jsonl")
    predictions = _Inside("predictions.parquet")
    samples = _Inside("samples.json")
    timing = _Inside("timing.json")
    records = _Inside("records")
    result = _Inside("result.json")
    manifest = _Inside("manifest.json")
    lock = _Inside(".lock")
    checkpoint = _Inside("checkpoint")
    model = _Inside("model")
    adapter = _Inside("model/adapter")

    @property
    def arm(self) -> str:
        return self.path.parent.name

    @property
    def seed(self) -> int:
        return int(self.path.name.removeprefix("seed-"))

    @property
    def name(self) -> str:
        return f"{self.arm}/{self.path.name}"

    def check_plan(self, expected: dict[str, Any]) -> None:
        """Refuse a folder whose run has other settings, or does not say which it has; a run that failed is replaced."""
        try:
            found = read_sealed(self.plan)
        except (OSError, ValueError) as error:
            missing, left = isinstance(error, FileNotFoundError), self.trace()
            if missing and left is None:
                return
            why = f"is missing, but {left} is there" if missing else explain(error)
            reason = f"its plan.json {why}, so nothing says what was trained"
        else:
            if found["key"] == expected["key"] or self._failed:
                return
            changed = one_of(_changes(found.get("settings", {}), expected["settings"])[:4]) or "the settings"
            reason = f"this run was made by another plan ({changed})"
        raise LedgerError(
            f"{self.path}: {reason}. Nothing was changed. Move this folder away, or use another folder with --runs or another "
            "name for the study."
        )

    def trace(self) -> str | None:
        """The name of something that a run left in the folder and that could pass for another run's."""
        if any(self.checkpoint.glob("*")):
            return self.checkpoint.name
        kept = (self.result, self.manifest, self.predictions, self.model)
        return next((trace.name for trace in kept if trace.exists()), None)

    def write_plan(self, plan: dict[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_sealed(self.plan, plan)

    @property
    def _failed(self) -> bool:
        with suppress(OSError, ValueError):
            return bool(read_sealed(self.result)["status"] == "failed" and not self.manifest.exists())
        return False

    def begin(self, plan: dict[str, Any]) -> None:
        """Make the folder that of a run which is under way; nothing stays of a failed one with other settings."""
        if (read_json(self.plan) or plan).get("key") != plan["key"]:
            for old in self.path.iterdir():
                if old.name not in (self.lock.name, LEASE):
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
        self.write_plan(plan)
        self.checkpoint.mkdir(exist_ok=True)
        for left in (self.path, self.records):
            remove_leftovers(left)
        for old in (self.result, self.manifest):
            old.unlink(missing_ok=True)

    def clear_scratch(self) -> None:
        """Remove checkpoints; a finished run needs none."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)


def is_under_way(folder: RunFolder) -> bool:
    """Whether a process performs a run, on this machine or on another."""
    return is_locked(folder.lock) or is_leased(folder.path)


def explain(error: OSError | ValueError) -> str:
    """Why a file cannot be used, in words that follow its name."""
    return f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)


def read_record(file: Path, advice: str) -> dict[str, Any]:
    """A sealed file that a study or a suite keeps; `advice` says what to do where it is not what was written."""
    try:
        return read_sealed(file)
    except (OSError, ValueError) as error:
        raise LedgerError(f"{file} {explain(error)}; {advice}.") from None


def write_record(file: Path, value: Mapping[str, Any]) -> None:
    """Write one, in a folder that is made for it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(file, value)
    except OSError as error:
        raise LedgerError(f"{file} cannot be written ({error.strerror}); fix that or use another --runs.") from None


def _changes(old: Any, new: Any, path: str = "") -> list[str]:
    """What differs between two settings, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        return [one for key in keys for one in _changes(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))]
    return [] if old == new else [f"{path} was {old}, is {new}"]


@contextmanager
def lock(path: Path, message: str) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends; the message is for who comes while another process has it."""
    until = time.monotonic() + MOMENT

    def refuse() -> None:
        if time.monotonic() > until:
            raise LedgerError(message)

    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(wait_for_lock(path, refuse))
        except OSError as error:
            raise LedgerError(
                f"{path}: the lock cannot be opened ({error.strerror}); fix that, or move it away."
            ) from None
        yield


def run_folder(runs: Path, study: str, arm: str, seed: int) -> RunFolder:
    return RunFolder(runs / study / arm / f"seed-{seed}")


def run_folders(study: Path) -> list[RunFolder]:
    """Every run folder of a study; one that was moved aside under another name (`seed-0-old`) is none."""
    homes = [study / arm for arm in _names_in(study)]
    found = [home / name for home in homes for name in _names_in(home) if SEED_FOLDER.fullmatch(name)]
    return [RunFolder(path) for path in found]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []


def runs_with_result(study: Path) -> list[RunFolder]:
    return [folder for folder in run_folders(study) if folder.result.is_file()]


def study_names(runs: Path) -> list[str]:
    """The studies of a runs folder, and those of their trials (`NAME/tuning`); one whose folder cannot be read is left out."""
    try:
        names = os.listdir(runs)  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be read ({error.strerror}); choose another with --runs."
        ) from None
    return sorted(name for one in names for name in (one, f"{one}/{TRIALS}") if _is_study(runs / name))


def _is_study(path: Path) -> bool:
    try:
        return (path / "study.json").is_file()
    except OSError:
        return False


def require_study(runs: Path, study: str) -> Path:
    """The folder of a study that has been started."""
    if study not in (names := study_names(runs)):
        known = f"; studies there: {one_of(names)}.{nearest(study, names)}" if names else "; it holds no study yet."
        raise LedgerError(f"no study '{study}' in the runs folder {runs}{known} Start one with `fairtune run FILE`.")
    return runs / study


def find_study(name: str, runs: Path) -> tuple[Path, str]:
    """The runs folder and the name of a study that is given by its name, or by its own folder, which may be in another."""
    path = Path(name)
    if name not in study_names(runs) and _is_study(path):
        path = path.resolve()
        home = path.parent.parent if path.name == TRIALS and _is_study(path.parent) else path.parent
        return home, path.relative_to(home).as_posix()
    require_study(runs, name)
    return runs, name


def is_run(name: str, runs: Path) -> bool:
    """Whether a run is meant, by its folder or as `study/arm/seed-n`."""
    return _run_path(name, runs) is not None


def find_folder(run: str | Path, runs: Path) -> RunFolder:
    """The folder of a run that has been begun, which is given itself or as `study/arm/seed-n`."""
    if path := _run_path(run, runs):
        return RunFolder(path.resolve())
    known = [f"{study}/{folder.name}" for study in study_names(runs) for folder in run_folders(runs / study)]
    if not known:
        raise LedgerError(
            f"'{run}' is not a run: that folder has no plan.json, and the runs folder {runs} holds no run."
        )
    near = nearest(str(run).removeprefix(f"{runs}/"), known)
    raise LedgerError(f"'{run}' is not a run; runs in {runs}: {one_of(known, 6)}.{near}")


def _run_path(run: str | Path, runs: Path) -> Path | None:
    return next((path for path in (Path(run), runs / run) if (path / "plan.json").is_file()), None)


def require_writable(runs: Path) -> None:
    """Fail before any work if nothing can be recorded."""
    probe = runs / f".writable-{os.getpid()}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be written ({error.strerror}); choose another with --runs, or fix its permissions."
        ) from None
