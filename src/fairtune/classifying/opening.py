"""A folder with a classifier, ready to predict: one that fairtune saved, or any of transformers'."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.classifying.predicting import Predictor
from fairtune.errors import ModelError
from fairtune.models.sources import find_model

SAVED = "fairtune.json"


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
    """The classifier in a folder, or by a hub id.

    Raises:
        ModelError: it is not there, is damaged, or does not tell classes apart.
    """
    from fairtune.classifying.process import find_device

    place = find_device(device)
    if (Path(name).expanduser() / SAVED).is_file():
        return _saved(Path(name).expanduser(), place, batch_tokens)
    return _plain(name, place, batch_tokens)


def _saved(folder: Path, device: str, batch_tokens: int | None) -> Opened:
    from fairtune.classifier import TextClassifier

    found = TextClassifier.load(folder)
    own, record = found.predictor_, found.record_
    predictor = Predictor(own.network, own.tokenizer, own.max_length, device, "auto", batch_tokens)
    return Opened(predictor, found.classes_.tolist(), record.names, record.width, getattr(record, "label", None))


def _plain(name: str, device: str, batch_tokens: int | None) -> Opened:
    from fairtune.models.loading import load_plain_classifier, load_tokenizer

    source = find_model(name).fetched()
    network = load_plain_classifier(source)
    tokenizer = load_tokenizer(source.fetch())
    names: dict[int, str] = network.config.id2label
    classes = [str(names[number]) for number in sorted(names)]
    if len(set(classes)) != len(classes):
        raise ModelError(f"model '{name}': its config.json gives several outputs one name: {', '.join(classes)}.")
    length = min(int(tokenizer.model_max_length), source.positions or 1 << 30)
    if length >= 1 << 30:
        length = 512
    return Opened(Predictor(network, tokenizer, length, device, "auto", batch_tokens), classes)
