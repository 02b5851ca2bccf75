"""From a finished run to its delta, tried out before it is handed over; or to a copy of its whole model."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from fairtune.core.errors import LedgerError, ModelError
from fairtune.core.files import read_json, read_sealed
from fairtune.core.plugins import take_plugins
from fairtune.core.version import __version__
from fairtune.export.new_folder import new_folder, require_new
from fairtune.export.recipe import (
    FORMAT,
    RECIPE,
    TENSORS,
    Checkpoint,
    Recipe,
    describe_fault,
    write_recipe,
)
from fairtune.export.restoration import (
    content_sha256,
    find_checkpoint,
    machine,
    rebuild_start,
    require_identity,
    write_whole,
)
from fairtune.export.tensors import (
    copied,
    file_digests,
    named_tensors,
    same_bits,
)
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import find_folder
from fairtune.models.folder_safety import weight_files
from fairtune.models.sources import ModelSource, file_sha256
from fairtune.models.transformers_files import load_network
from fairtune.settings.learners import is_simple
from fairtune.study.plan import PROTOCOL

WHOLE = "Export it without --delta."


@dataclass(frozen=True)
class FinishedRun:
    """A finished run that kept its model.

    Args:
        plan: what its plan.json says.
    """

    folder: RunFolder
    plan: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.plan['study']}/{self.plan['arm']}/seed-{self.plan['seed']}"

    @property
    def model(self) -> Path:
        return self.folder.model

    def checkpoint_folder(self) -> str | None:
        """The folder that the study's plan recorded for a checkpoint that is neither embedded nor the hub's."""
        model = self._study_plan().get("model")
        if not isinstance(model, dict) or model.get("hub_id") or model.get("name") == "minilm":
            return None
        return model.get("folder")

    def plugins(self) -> list[dict[str, Any]]:
        """The plug-ins that this run's methods or its task come from, with the places that the study's plan recorded."""
        used = {plugin["module"] for plugin in self.plan["settings"].get("plugins", [])}
        return [plugin for plugin in self._study_plan().get("plugins", []) if plugin["module"] in used]

    def _study_plan(self) -> dict[str, Any]:
        return read_json(self.folder.path.parent.parent / "plans" / f"{self.plan['plan']}.json") or {}


@dataclass(frozen=True)
class Exported:
    """A delta that was written.

    Args:
        stored: tensors in delta.safetensors.
        tensors: of the whole model, as training held them.
        delta_bytes: of both files.
        rebuilt_otherwise: frozen tensors that had to be stored after all, since this machine rebuilds them with different bits.
        plugins: files of plug-ins that restoring must be given, as they are not installed.
    """

    run: str
    out: str
    stored: int
    tensors: int
    model_bytes: int
    delta_bytes: int
    rebuilt_otherwise: tuple[str, ...]
    plugins: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.delta_bytes / self.model_bytes

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}


def find_run(run: str | Path, runs: Path) -> FinishedRun:
    """A finished run with its model.

    Args:
        run: its folder, or `study/arm/seed-n`.
        runs: the folder that keeps the runs.

    Raises:
        LedgerError: there is no such run, or nothing of it that could be exported.
    """
    folder = find_folder(run, runs)
    state = run_state(folder, thorough=True)
    if state.status == DAMAGED:
        raise LedgerError(
            f"{folder.path}: this run is not what it was when it was closed: {state.problem}. Nothing was exported; move the "
            "folder away and run the study again."
        )
    found = FinishedRun(folder, read_sealed(folder.plan))
    if state.status != FINISHED:
        why = f" ({reason})" if (reason := state.result.get("reason")) else ""
        raise LedgerError(
            f"run {found.name} has not finished: it is {state.status}{why}. End it with `fairtune run`, then export it."
        )
    if not folder.model.is_dir():
        raise LedgerError(
            f"run {found.name} kept no model (execution.save_model was false). To have one, move its folder away and run the "
            "study again with --set execution.save_model=true."
        )
    return found


def export_delta(run: str | Path, out: str | Path, runs: str | Path = "runs", model: str | None = None) -> Exported:
    """Write what training changed in a run's model, and the recipe for the rest; then prove that it restores.

    Args:
        run: a run folder, or `study/arm/seed-n` in `runs`.
        out: a folder that does not exist yet.
        model: where the run's checkpoint is, if it was moved.

    Raises:
        FairtuneError: the run has nothing to export, its checkpoint is gone, or the folder cannot be written.
    """
    found, place = find_run(run, Path(runs)), Path(out)
    require_new(place)
    settings = found.plan["settings"]
    if learner := (settings.get("learner") or {}).get("name"):
        why = "it changed no checkpoint" if is_simple({"learner": learner}) else "its head is no part of a checkpoint"
        raise LedgerError(f"run {found.name} is a simple baseline: {why}, so there is no delta to take. {WHOLE}")
    if settings.get("protocol") != PROTOCOL:
        raise LedgerError(
            f"run {found.name} was made under protocol {settings.get('protocol')}; this fairtune ({__version__}) has protocol "
            f"{PROTOCOL} and would build another start. {WHOLE}"
        )
    if "tokenizer" in settings:
        raise LedgerError(
            f"run {found.name} has a tokenizer of its study ({settings['tokenizer']['name']}), as language models and presets do; "
            f"a delta is taken against a checkpoint with its own. {WHOLE}"
        )
    labels = _labels(found)
    take_plugins(found.plugins())
    source = _checkpoint(found, model)
    tensors, count, frozen = _changed(found, source, labels)
    with new_folder(place) as aside:
        save_file(tensors, aside / TENSORS, {"format": "pt"})
        try:
            recipe = _recipe(found, source, labels, tensors, file_sha256(aside / TENSORS))
        except ValidationError as error:
            raise LedgerError(f"run {found.name} has no delta: {describe_fault(error)}. {WHOLE}") from None
        write_recipe(aside, recipe)
        size = sum((aside / name).stat().st_size for name in (TENSORS, RECIPE))
        wrong = write_whole(recipe, tensors, source, aside / "trial")
        if wrong:
            raise LedgerError(
                f"run {found.name} cannot be restored from a delta: {wrong[0]} would differ in bits. {WHOLE}"
            )
        shutil.rmtree(aside / "trial")
    stored_frozen = tuple(name for name in tensors if name in frozen)
    files = tuple(plugin["file"] for plugin in found.plugins() if plugin.get("distribution") is None)
    return Exported(found.name, str(place), len(tensors), count, recipe.model_bytes, size, stored_frozen, files)


def export_model(run: str | Path, out: str | Path, runs: str | Path = "runs") -> int:
    """Copy a run's whole model, tokenizer and all; returns the size of the copy in bytes."""
    found = find_run(run, Path(runs))
    with new_folder(Path(out)) as aside:
        shutil.copytree(found.model, aside, dirs_exist_ok=True)
        return sum(path.stat().st_size for path in aside.rglob("*") if path.is_file())


def _labels(run: FinishedRun) -> tuple[str, ...]:
    """The label names in the order of the model's outputs."""
    if (run.model / "adapter_config.json").is_file():
        raise LedgerError(f"run {run.name} kept only its adapter, which is a delta already. {WHOLE}")
    try:
        names = json.loads((run.model / "config.json").read_text(encoding="utf-8"))["id2label"]
        return tuple(str(names[key]) for key in sorted(names, key=int))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise LedgerError(f"{run.model} is damaged: its config.json names no labels (id2label).") from None


def _checkpoint(run: FinishedRun, given: str | None) -> ModelSource:
    """The checkpoint, where the user says, where the study's plan had it, or by its name."""
    wanted = run.plan["settings"]["model"]
    source = find_checkpoint(wanted["name"], wanted["identity"], given or run.checkpoint_folder())
    require_identity(source, wanted["identity"])
    return source


def _changed(
    run: FinishedRun, source: ModelSource, labels: tuple[str, ...]
) -> tuple[dict[str, Tensor], int, frozenset[str]]:
    """Tensors of the run's model that are not those of its start; how many there are in all; which were frozen."""
    network, frozen = rebuild_start(run.plan["settings"], source, labels)
    before = copied(named_tensors(network))
    trained = _load(type(network), run)
    try:
        network.load_state_dict(trained.state_dict())
    except RuntimeError:
        raise LedgerError(
            f"the model of run {run.name} is built differently from what it started from. {WHOLE}"
        ) from None
    after = named_tensors(network)
    return (
        copied({name: tensor for name, tensor in after.items() if not same_bits(tensor, before[name])}),
        len(after),
        frozen,
    )


def _load(model_class: type[PreTrainedModel], run: FinishedRun) -> PreTrainedModel:
    """The run's model by plain transformers, which knows of shards, tied weights and renamed tensors."""
    try:
        network, info = load_network(model_class, run.model, str(run.model), "what it started from", dtype="auto")
    except ModelError as error:
        raise LedgerError(f"{run.model} is damaged: {str(error).removeprefix(f'{run.model}: ')}") from None
    if info["missing_keys"]:
        raise LedgerError(f"{run.model} is damaged: it lacks {sorted(info['missing_keys'])[0]}.")
    return network


def _recipe(
    run: FinishedRun, source: ModelSource, labels: tuple[str, ...], tensors: dict[str, Tensor], delta_sha256: str
) -> Recipe:
    wanted = run.plan["settings"]["model"]
    return Recipe(
        format=FORMAT,
        fairtune=__version__,
        protocol=PROTOCOL,
        signature=run.plan["signature"],
        checkpoint=Checkpoint(
            name=wanted["name"],
            identity=wanted["identity"],
            sha256=content_sha256(source),
            hub_id=source.hub_id,
            revision=source.revision,
        ),
        labels=labels,
        settings=run.plan["settings"],
        delta_sha256=delta_sha256,
        stored=tuple(sorted(tensors)),
        model=file_digests(run.model),
        model_bytes=sum(file.stat().st_size for file in weight_files(run.model)),
        made_with=machine(),
    )
