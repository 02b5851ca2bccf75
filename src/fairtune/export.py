"""A finished run's model as a folder of its own: one that plain transformers loads, or the PEFT library's adapter folder."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_json, read_sealed, write_folder, write_json
from fairtune.ledger.folders import RunFolder, find_folder
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state

CONFIG, ADAPTER_CONFIG = "config.json", "adapter_config.json"


@dataclass(frozen=True)
class ExportedModel:
    """A model that was exported.

    Args:
        run: its name, `study/arm/seed-n`.
        adapter: whether it is an adapter, which is loaded on top of its checkpoint.
        loading: lines of Python that load it.
    """

    run: str
    out: str
    model_bytes: int
    adapter: bool
    loading: tuple[str, ...]


def export_model(run: str | Path, out: str | Path, runs: str | Path = "runs") -> ExportedModel:
    """Copy a finished run's model and tokenizer to a new folder; of a PEFT arm, the adapter instead of the whole model.

    Args:
        run: a run folder, or `study/arm/seed-n` in `runs`.
        out: a folder that does not exist yet, or is empty.

    Raises:
        LedgerError: there is no such run, it has nothing to export, or the folder cannot be written.
    """
    folder, place = find_folder(run, Path(runs)), Path(out)
    plan = _sealed_plan(folder)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rmdir()  # which only an empty folder allows
        with write_folder(place) as aside:
            if folder.adapter.is_dir():
                whole = shutil.ignore_patterns("model*.safetensors*", folder.adapter.name)
                shutil.copytree(folder.model, aside, dirs_exist_ok=True, ignore=whole)
                shutil.copytree(folder.adapter, aside, dirs_exist_ok=True)
                _name_checkpoint(aside, plan["model"])
            else:
                shutil.copytree(folder.model, aside, dirs_exist_ok=True)
    except OSError as error:
        if os.path.lexists(place):
            raise LedgerError(f"{place} exists already and was left as it is; choose a new or empty folder.") from None
        raise LedgerError(f"{place} cannot be written ({error.strerror or error}); choose another folder.") from None
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return ExportedModel(_name(plan), str(place), size, (place / ADAPTER_CONFIG).is_file(), tuple(_loading(place)))


def _sealed_plan(folder: RunFolder) -> dict[str, Any]:
    """The plan of a finished run that kept its model, none of which has changed since."""
    state = run_state(folder, thorough=True)
    if state.status == DAMAGED:
        raise LedgerError(
            f"{folder.path}: this run is not what it was when it was closed: {state.problem}. Nothing was exported; move the "
            "folder away and run the study again."
        )
    plan = read_sealed(folder.plan)
    if state.status != FINISHED:
        why = f" ({reason})" if (reason := state.result.get("reason")) else ""
        raise LedgerError(
            f"run {_name(plan)} has not finished: it is {state.status}{why}. End it with `fairtune run`, then export it."
        )
    if not folder.model.is_dir():
        raise LedgerError(
            f"run {_name(plan)} kept no model (execution.save_model was false). To have one, move its folder away and run the "
            "study again with --set execution.save_model=true."
        )
    return plan


def _name(plan: dict[str, Any]) -> str:
    return f"{plan['study']}/{plan['arm']}/seed-{plan['seed']}"


def _name_checkpoint(folder: Path, model: dict[str, Any]) -> None:
    """Let an adapter name its checkpoint on the hub, where the run knew only the folder that it had been fetched to."""
    (folder / "README.md").unlink(missing_ok=True)  # PEFT's empty form, which names that folder too
    if model.get("hub_id"):
        known = {"base_model_name_or_path": model["hub_id"], "revision": model["revision"]}
        write_json(folder / ADAPTER_CONFIG, {**(read_json(folder / ADAPTER_CONFIG) or {}), **known})


def _loading(folder: Path) -> list[str]:
    config, adapter, place = read_json(folder / CONFIG) or {}, read_json(folder / ADAPTER_CONFIG), repr(str(folder))
    built = str((config.get("architectures") or [""])[0])
    if (folder / "learner.json").is_file():
        imports = ["from pathlib import Path", "from fairtune.learners.registry import load_learner"]
        return [*imports, f"learner, facts = load_learner(Path({place}))"]
    if built.startswith("BPSOM"):
        return [f"from fairtune.methods.bpsom.model import {built}", f"model = {built}.from_pretrained({place})"]
    writes = built.endswith(("ForCausalLM", "LMHeadModel"))
    auto = "AutoModelForCausalLM" if writes else "AutoModelForSequenceClassification"
    if adapter is None:
        return [f"from transformers import {auto}", f"model = {auto}.from_pretrained({place})"]
    revision = f", revision={adapter['revision']!r}" if adapter.get("revision") else ""
    return [
        "from peft import PeftModel",
        f"from transformers import AutoConfig, {auto}",
        f"config = AutoConfig.from_pretrained({place})",
        f"base = {auto}.from_pretrained({adapter['base_model_name_or_path']!r}{revision}, config=config)",
        f"model = PeftModel.from_pretrained(base, {place})",
    ]
