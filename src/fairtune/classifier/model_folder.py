"""A fitted classifier as a folder: a plain transformers model, what fairtune knows of it, a model card, and sums of them all.

Of a probe the transformers model is the encoder, and the head lies beside it. The folder is written beside its place and
moved there when it is whole. Nothing in it is pickled, and nothing in it is run when it is read.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtune.classifier.errors import UnusableModelError
from fairtune.classifier.model_card import model_card
from fairtune.classifier.predictor import Predictor
from fairtune.classifier.probe_network import read_probe
from fairtune.classifier.process import borrowed_process
from fairtune.classifier.provenance import Provenance
from fairtune.core import __version__
from fairtune.core.errors import ModelError
from fairtune.core.files import (
    files_of,
    read_json,
    sha256_of,
    sums_of,
    write_folder,
    write_json,
)
from fairtune.models.loader import load_classifier
from fairtune.models.model_parts import head_parameters
from fairtune.models.sources import ModelSource
from fairtune.models.tokenizers import TRIED, load_tokenizer
from fairtune.models.transformers_files import explain_failure, quiet_transformers

FACTS, SUMS, CARD = "fairtune.json", "manifest.json", "README.md"
MODEL_FOLDER, FORMAT = "text-classifier", 1


def save_classifier(
    folder: Path, network: Any, tokenizer: Any, provenance: Provenance, parameters: Mapping[str, Any]
) -> None:
    """Write a classifier; one that is in the folder already is replaced when the new one is whole.

    Args:
        parameters: of the estimator, plain data.

    Raises:
        UnusableModelError: the folder holds something else, or cannot be written.
    """
    folder = folder.expanduser().resolve()
    require_free(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with write_folder(folder, replace=True) as aside:
            write_files(aside, network, tokenizer, provenance, parameters)
            (aside / CARD).write_text(model_card(provenance, folder.name), encoding="utf-8")
            write_json(aside / SUMS, _sums(aside))
    except OSError as error:
        raise UnusableModelError(f"{folder}: cannot be written: {error.strerror or error}.") from None


def write_files(
    folder: Path, network: Any, tokenizer: Any, provenance: Provenance, parameters: Mapping[str, Any]
) -> None:
    """The files that decide what a classifier answers."""
    words = copy.deepcopy(tokenizer)
    words.model_max_length = provenance.max_length  # so that `truncation=True` cuts texts where training did
    with quiet_transformers():
        words.save_pretrained(folder)
        network.save_pretrained(folder)
    facts = {
        "kind": MODEL_FOLDER,
        "format": FORMAT,
        "fairtune": __version__,
        "parameters": parameters,
        "record": provenance.as_json(),
    }
    write_json(folder / FACTS, facts)


def load_files(folder: Path) -> tuple[Any, Any, Provenance, dict[str, Any]]:
    """Network, tokenizer, provenance and parameters of a classifier whose files are whole."""
    facts = read_json(folder / FACTS)
    if facts is None or facts.get("kind") != MODEL_FOLDER:
        raise UnusableModelError(f"{folder}: {FACTS} does not describe a text classifier.")
    form = facts.get("format")
    if isinstance(form, int) and form > FORMAT:
        raise UnusableModelError(
            f"{folder}: it was saved by fairtune {facts.get('fairtune')}, which is newer; update fairtune."
        )
    try:
        with borrowed_process("cpu"):
            with explain_failure(f"{folder}: {FACTS} is damaged"):
                provenance, parameters = Provenance.from_json(facts["record"]), dict(facts["parameters"])
                if provenance.width not in (1, 2):
                    raise ValueError(f"an example has {provenance.width!r} texts")
            tokenizer = load_tokenizer.__wrapped__(folder)  # not the one that lay in this folder before
            source = ModelSource(folder.name, "", str(folder))
            with explain_failure(f"{folder}: {FACTS} is damaged"):
                names, attention = provenance.classes.names, provenance.settings["train"].get("attention")
                probe = "learner" in provenance.settings
            loaded = load_classifier(source, names, tokenizer, attention)
            network = read_probe(folder, loaded.network, len(names)) if probe else loaded.network
            with explain_failure(f"{folder}: no text goes through it"):
                Predictor(network, tokenizer, provenance.max_length, "cpu").logits([TRIED[: provenance.width]])
    except ModelError as error:
        raise UnusableModelError(str(error)) from None
    unread = head_parameters(loaded.network) if probe else frozenset()
    fresh = sorted(set(loaded.network.state_dict()) - loaded.from_checkpoint - unread)
    if fresh:
        raise UnusableModelError(f"{folder}: its weights lack {fresh[0]}, so it is not the classifier that was saved.")
    return network.eval(), tokenizer, provenance, parameters


def load_classifier_folder(folder: Path) -> tuple[Any, Any, Provenance, dict[str, Any]]:
    """Network, tokenizer, provenance and parameters of a saved classifier.

    Raises:
        UnusableModelError: there is none, or a file of it is missing, cut off or changed; it is named.
    """
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise UnusableModelError(f"{folder}: there is no such folder.")
    if not (folder / FACTS).exists() and not (folder / SUMS).exists():
        hint = (
            " It is a plain transformers model: fit one from it with TextClassifier(model=...)."
            * (folder / "config.json").exists()
        )
        raise UnusableModelError(f"{folder}: no classifier was saved here, since {FACTS} is missing.{hint}")
    _require_whole(folder)
    return load_files(folder)


def _require_whole(folder: Path) -> None:
    """Refuse a folder whose files are not those that were written. The card is not looked at: it is for its readers to edit."""
    sums = read_json(folder / SUMS)
    remedy = "Copy or save the classifier again."
    if sums is None:
        what = "cannot be read" if (folder / SUMS).exists() else "is missing"
        raise UnusableModelError(f"{folder}: {SUMS} {what}, so the folder is not whole. {remedy}")
    for name, expected in sums.items():
        file = folder / name
        if not file.is_file():
            raise UnusableModelError(f"{folder}: {name} is missing. {remedy}")
        size = file.stat().st_size
        if size < expected["bytes"]:
            raise UnusableModelError(f"{folder}: {name} is cut off: {size:,} of {expected['bytes']:,} bytes. {remedy}")
        if size != expected["bytes"] or sha256_of(file) != expected["sha256"]:
            raise UnusableModelError(f"{folder}: {name} was changed after it was saved (its sha256 differs). {remedy}")


def _sums(folder: Path) -> dict[str, dict[str, Any]]:
    sums = sums_of(folder, [name for name in files_of(folder) if name not in (CARD, SUMS)])
    return {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256} for name, sha256 in sums.items()}


def require_free(folder: Path) -> None:
    """Refuse a place that holds anything but a classifier of ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UnusableModelError(f"{folder}: that is a file; name a folder.")
    held = files_of(folder)
    facts = read_json(folder / FACTS) or {}
    if held and facts.get("kind") != MODEL_FOLDER:
        raise UnusableModelError(
            f"{folder}: the folder holds other things, such as {held[0]}, and no classifier; name a new or empty folder."
        )
    ours = {FACTS, SUMS, CARD, *(read_json(folder / SUMS) or held)}
    others = [name for name in held if name not in ours]
    if others:
        raise UnusableModelError(
            f"{folder}: besides a classifier the folder holds {others[0]}, which would be lost; move it, or name another folder."
        )


def packed(network: Any, tokenizer: Any, provenance: Provenance, parameters: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a classifier as bytes, for a copy or another process."""
    with tempfile.TemporaryDirectory(prefix="fairtune-copy-") as name:
        folder = Path(name)
        write_files(folder, network, tokenizer, provenance, parameters)
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def unpacked(files: Mapping[str, bytes]) -> tuple[Any, Any, Provenance, dict[str, Any]]:
    """Network, tokenizer, provenance and parameters."""
    with tempfile.TemporaryDirectory(prefix="fairtune-copy-") as name:
        for file, content in files.items():
            place = Path(name) / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return load_files(Path(name))
