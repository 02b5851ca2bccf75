"""Training texts with words left out, exchanged or misspelt, or changed by a function: in a run, and as `augment_texts`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from torch import nn

from fairtune.core.errors import DataError, FairtuneError
from fairtune.methods.augment import AugmentConfig
from fairtune.methods.augment.function import Function, ask, find_function
from fairtune.methods.base import Method, TrainingData
from fairtune.tasks.task import Texts

LEAST_LETTERS = 3
"""Shorter words get no typo: too little would be left of them."""


def changed(text: str, draws: random.Random, delete: float, swap: float, typo: float) -> str:
    """A text with words left out, then neighbours exchanged, then words misspelt, each with its chance."""
    pieces = re.split(r"(\s+)", text)  # words at even places, what parts them at odd ones
    gaps, words = ["", *pieces[1::2]], pieces[::2]
    if not words[0]:  # white space before the first word
        gaps, words = gaps[1:], words[1:]
    end = ""
    if words and not words[-1]:
        end, gaps, words = gaps[-1], gaps[:-1], words[:-1]
    if not words:
        return text
    first = gaps[0]
    if delete:
        stays = [draws.random() >= delete for _ in words]
        if not any(stays):
            stays[draws.randrange(len(words))] = True
        gaps = [gap for gap, stay in zip(gaps, stays, strict=True) if stay]
        words = [word for word, stay in zip(words, stays, strict=True) if stay]
        gaps[0] = first
    if swap:
        place = 0
        while place < len(words) - 1:
            if draws.random() < swap:
                words[place], words[place + 1] = words[place + 1], words[place]
                place += 1  # a word moves once
            place += 1
    if typo:
        words = [misspelt(word, draws) if draws.random() < typo else word for word in words]
    return "".join(gap + word for gap, word in zip(gaps, words, strict=True)) + end


def misspelt(word: str, draws: random.Random) -> str:
    """A word with one slip: two neighbouring letters exchanged, a letter lost, or a letter twice."""
    if len(word) < LEAST_LETTERS:
        return word
    change, place = draws.randrange(3), draws.randrange(len(word) - 1)
    here, after = word[place], word[place + 1]
    if change == 0 and here != after:
        return word[:place] + after + here + word[place + 2 :]
    if change == 1:
        return word[:place] + word[place + 1 :]
    return word[: place + 1] + word[place:]


Row = TypeVar("Row", str, tuple[str, ...])


class Augmenter:
    """Changes training texts, and keeps what a function answered.

    Attributes:
        answers: of the function, by text.
    """

    def __init__(self, config: AugmentConfig, seed: int = 0) -> None:
        self.config, self.seed = config, seed
        self.answers: dict[str, str] = {}
        self._function: Function | None = None

    def find(self) -> None:
        """Import the function, if there is one."""
        if self.config.function is not None and self._function is None:
            self._function = find_function(self.config.function)

    def texts(self, rows: Sequence[tuple[str, ...]], epoch: int) -> list[tuple[str, ...]]:
        """The rows of an epoch; of a pair each text is changed by itself."""
        c = self.config
        if c.idle:
            return list(rows)
        if c.function is not None:
            self._ask(
                c.function, [text for number, row in enumerate(rows) if self._drawing(epoch, number) for text in row]
            )
        result = []
        for number, row in enumerate(rows):
            draws = self._drawing(epoch, number)
            if draws is not None:
                asked = [self.answers.get(text, text) for text in row]
                row = tuple(changed(text, draws, c.delete, c.swap, c.typo) for text in asked)
            result.append(row)
        return result

    def _drawing(self, epoch: int, row: int) -> random.Random | None:
        """What a row's changes are drawn from; None if it stays as it is in this epoch."""
        draws = random.Random(f"{self.seed}.{epoch}.{row}")
        return draws if draws.random() < self.config.share else None

    def _ask(self, name: str, texts: Sequence[str]) -> None:
        function = self._function = self._function or find_function(name)
        new = [text for text in dict.fromkeys(texts) if text not in self.answers]
        if new:
            self.answers.update(zip(new, ask(function, name, new), strict=True))


def augment_texts(texts: Sequence[Row], epoch: int = 0, seed: int = 0, **settings: Any) -> list[Row]:
    """Training texts, or pairs of them as tuples, changed for an epoch.

    Args:
        settings: those of the method `augment`: share, delete, swap, typo, function.

    Raises:
        FairtuneError: a setting is impossible, or something is not a text.
    """
    try:
        config = AugmentConfig.model_validate(settings)
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc'][:1])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise FairtuneError(f"augment_texts: {reasons}.") from None
    rows = [(text,) if isinstance(text, str) else text for text in texts]
    for number, row in enumerate(rows):
        if not isinstance(row, tuple) or not all(isinstance(text, str) for text in row):
            raise DataError(f"augment_texts: entry {number} is {row!r}; each must be a text, or a tuple of texts.")
    found = Augmenter(config, seed).texts(rows, epoch)
    return [new[0] if isinstance(old, str) else new for old, new in zip(texts, found, strict=True)]


class Augment(Method):
    config: AugmentConfig

    def __init__(self, config: AugmentConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._augmenter = Augmenter(config, seed)

    def begin(self, data: TrainingData) -> None:  # noqa: ARG002
        if not self.config.idle:
            self._augmenter.find()  # what is wrong with a function is reported before the first step

    def texts(self, texts: Sequence[Texts], epoch: int) -> Sequence[Texts]:
        return self._augmenter.texts(texts, epoch)

    def state_dict(self) -> dict[str, Any]:
        """What the function answered: it may be slow, and need not answer the same again."""
        return {"answers": self._augmenter.answers} if self.config.function else {}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        self._augmenter.answers.update(state.get("answers", {}))
