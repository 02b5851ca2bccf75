"""Reading texts: lists, pandas, numpy or pairs become tuples of one or two texts, or a message that says which one is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairtune.classifier.errors import InputError
from fairtune.core.errors import shown
from fairtune.tasks.task import Texts

WANTED = "give a list, a pandas Series or DataFrame, or a numpy array of texts; pairs as tuples of two texts"


@dataclass(frozen=True)
class Given:
    """Texts as they were given.

    Args:
        names: of the columns, where they had such.
        index: of the rows, where pandas gave one.
    """

    texts: list[Texts]
    names: tuple[str, ...] | None = None
    index: Any = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def width(self) -> int:
        """How many texts an example has; 0 where there are no examples."""
        return len(self.texts[0]) if self.texts else 0


def read_texts(given: Any, what: str = "texts") -> Given:
    """Texts as tuples of one text, or of the two of a pair.

    Args:
        what: they are called in messages.

    Raises:
        InputError: naming the first one that is not a text, and its position from 0.
    """
    if isinstance(given, Given):
        return given
    rows = _rows(given, what)
    texts = [_texts(row, place, what) for place, row in enumerate(rows)]
    _require_alike(texts, what)
    _require_unicode(texts, what)
    names = tuple(map(str, given.columns)) if hasattr(given, "columns") else None
    index = getattr(given, "index", None)
    return Given(texts, names, None if callable(index) else index)


def require_some(given: Given, what: str = "texts") -> None:
    if not given.texts:
        raise InputError(f"{what}: there are none (0 examples); at least two classes with an example each are needed.")


def require_like(given: Given, width: int, names: Sequence[str] | None) -> None:
    """Refuse texts of another form than those of `fit`."""
    if given.texts and given.width != width:
        form = {1: "single texts", 2: "pairs"}
        raise InputError(f"texts: found {form[given.width]}, but the classifier was fitted on {form[width]}.")
    if names is not None and given.names is not None and given.names != tuple(names):
        raise InputError(
            f"texts: the columns are {', '.join(given.names)}, but at fit they were {', '.join(names)}; the order counts."
        )


def _rows(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | bytes):
        raise InputError(f"{what}: found one bare text, {shown(given)}; wrap it in a list: [{shown(given)}].")
    if hasattr(given, "toarray"):
        raise InputError(
            f"{what}: found a sparse matrix, not texts; a classifier of texts needs no vectorizer before it."
        )
    if given is None or isinstance(given, Mapping | Set) or not isinstance(given, Iterable):
        raise InputError(f"{what}: found {shown(given)} of type {type(given).__name__}; {WANTED}.")
    array = given.to_numpy() if hasattr(given, "columns") and hasattr(given, "to_numpy") else given
    if not isinstance(array, np.ndarray):
        return list(given)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] not in (1, 2)):
        raise InputError(
            f"{what}: found an array of shape {array.shape}; give one column of texts, or two columns for pairs."
        )
    return list(array.tolist())


def _texts(row: Any, place: int, what: str) -> Texts:
    if isinstance(row, str):
        return (str(row),)
    if isinstance(row, tuple | list) and 1 <= len(row) <= 2 and all(isinstance(text, str) for text in row):
        return tuple(map(str, row))
    if isinstance(row, tuple | list):
        if len(row) not in (1, 2):
            raise InputError(
                f"{what}: position {place} holds {len(row)} values, {shown(row)}; an example is one text, or a pair of two."
            )
        row = next(text for text in row if not isinstance(text, str))
    if is_missing(row):
        raise InputError(
            f"{what}: position {place} is {shown(row)}, not a text; remove such examples, or fill them, say with ''."
        )
    raise InputError(
        f"{what}: position {place} is {shown(row)} of type {type(row).__name__}, not a text; convert it with str()."
    )


def _require_alike(texts: list[Texts], what: str) -> None:
    for place, row in enumerate(texts):
        if len(row) != len(texts[0]):
            form = {1: "a single text", 2: "a pair"}
            raise InputError(
                f"{what}: position 0 is {form[len(texts[0])]}, but position {place} is {form[len(row)]}; all must be alike."
            )


def _require_unicode(texts: list[Texts], what: str) -> None:
    for place, row in enumerate(texts):
        try:
            "".join(row).encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{what}: position {place} holds half of a surrogate pair, {shown(row)}, which no encoding can write; fix it "
                "with text.encode(errors='replace').decode()."
            ) from None


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    )
