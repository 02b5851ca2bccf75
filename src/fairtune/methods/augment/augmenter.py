"""Texts changed for an epoch: each row's draws depend on the seed, the epoch and the row's number alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from fairtune.core.errors import DataError, FairtuneError
from fairtune.methods.augment.config import AugmentConfig
from fairtune.methods.augment.functions import Function, ask, find_function
from fairtune.methods.augment.words import changed

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
        FairtuneError: a setting is impossible, or something is no text.
    """
    try:
        config = AugmentConfig.model_validate(settings)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc'][:1])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise FairtuneError(f"augment_texts: {told}.") from None
    rows = [(text,) if isinstance(text, str) else text for text in texts]
    for number, row in enumerate(rows):
        if not isinstance(row, tuple) or not all(isinstance(text, str) for text in row):
            raise DataError(f"augment_texts: entry {number} is {row!r}; each must be a text, or a tuple of texts.")
    found = Augmenter(config, seed).texts(rows, epoch)
    return [new[0] if isinstance(old, str) else new for old, new in zip(texts, found, strict=True)]
