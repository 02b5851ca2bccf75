"""A folder with a classifier, ready to predict: one that fairtune saved, or any of transformers'."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.classifier.predicting import Predictor
from fairtune.core.errors import ModelError, nearest
from fairtune.core.pipes import undisturbed
from fairtune.models.sources import find_model

SAVED, SUMS = "fairtune.json", "manifest.json"
UNLIMITED = 4096
"""Tokens of a text where neither the model nor its tokenizer has a limit."""


@dataclass(frozen=True)
class Opened:
    """A classifier and what is known of the data it was trained on.

    Args:
        classes: in the order of the outputs, as they were given at training.
        columns: that held the texts, where they had names.
        width: texts of an example, 1 or 2; None is not known.
    """

    predictor: Predictor
    classes: list[Any]
    columns: list[str] | None = None
    width: int | None = None
    label: str | None = None


def open_classifier(name: str, device: str, batch_tokens: int | None = None) -> Opened:
    """The classifier in a folder, or by a hub id; for a command, whose standard input and output are left alone.

    Raises:
        ModelError: it is not there, is damaged, or does not tell classes apart.
    """
    from fairtune.classifier.process import find_device

    place = find_device(device)
    with undisturbed():  # standard input may hold the rows, and standard output be for the answers
        return _opened(name, place, batch_tokens)


def _opened(name: str, place: str, batch_tokens: int | None) -> Opened:
    folder = Path(name).expanduser()
    if any((folder / file).is_file() for file in (SAVED, SUMS)):
        return _saved(folder, place, batch_tokens)
    if not folder.is_dir() and "/" not in name:  # what has one may be a hub id
        beside = [found.name for found in folder.absolute().parent.iterdir() if found.is_dir()]
        raise ModelError(f"{name}: there is no such folder.{nearest(name, beside)} Make one with `fairtune train`.")
    return _plain(name, place, batch_tokens)


def _saved(folder: Path, device: str, batch_tokens: int | None) -> Opened:
    from fairtune.classifier.text_classifier import TextClassifier

    found = TextClassifier.load(folder, device)
    own, record = found.predictor_, found._record
    predictor = Predictor(own.network, own.tokenizer, own.max_length, device, "auto", batch_tokens)
    return Opened(predictor, found.classes_.tolist(), record.names, record.width, record.label)


def _plain(name: str, device: str, batch_tokens: int | None) -> Opened:
    from fairtune.models.loader import load_classifier
    from fairtune.models.tokenizers import TRIED, load_tokenizer
    from fairtune.models.transformers_files import explain_failure

    source = find_model(name).fetched()
    classes = _classes(name, source.fetch())
    tokenizer = load_tokenizer(source.fetch())
    loaded = load_classifier(source, classes, tokenizer)
    fresh = sorted(set(loaded.network.state_dict()) - loaded.from_checkpoint)
    if fresh:
        raise ModelError(
            f"model '{name}': it has no weights for {fresh[0]}, so it is no trained classifier; train one from it with "
            f"`fairtune train DATA --model {name} -o FOLDER`."
        )
    with explain_failure(f"model '{name}': no text goes through it"):
        length = min(int(tokenizer.model_max_length), source.positions or UNLIMITED)
        predictor = Predictor(loaded.network, tokenizer, length, device, "auto", batch_tokens)
        predictor.logits([TRIED[:1]])
    return Opened(predictor, list(classes))


def _classes(name: str, folder: Path) -> tuple[str, ...]:
    """What a model's config calls its outputs."""
    from fairtune.models.transformers_files import explain_failure, read_config

    what = f"model '{name}'"
    config = read_config(folder, what)
    with explain_failure(f"{what}: its config.json names no classes"):
        classes = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
    if len(classes) < 2 or config.problem_type in ("regression", "multi_label_classification"):
        raise ModelError(f"model '{name}': it does not tell classes apart, of which each text has one.")
    if len(set(classes)) != len(classes):
        raise ModelError(f"model '{name}': its config.json gives several outputs one name: {', '.join(classes)}.")
    return classes
