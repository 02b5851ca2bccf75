"""Augmentation: training texts with words left out, exchanged, misspelt, or changed by a function of the user's."""

from __future__ import annotations

import pkgutil
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field, field_validator, model_validator

from fairtune.core.errors import DataError, shown
from fairtune.methods.base import Method, TrainingData
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT, Number

if TYPE_CHECKING:
    from torch import nn

    from fairtune.tasks.task import Texts

FORM = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"
HINT = "define it with `def` at the top of a module, and give it or its name 'package.module:name'"
Function = Callable[[list[str]], Sequence[str]]
LEAST_LETTERS = 3
"""Shorter words get no typo: too little would be left of them."""
Chance = Annotated[Number, Field(ge=0, le=1)]


class AugmentConfig(MethodConfig):
    """Change the training texts a little in each epoch: leave words out, exchange neighbours, misspell, or ask a function."""

    share: Chance = Field(1.0, description="Share of the training examples that are changed in an epoch.")
    delete: Chance = Field(
        0.1, description="Chance of each word to be left out, never of all; 0 if absent beside a function."
    )
    swap: Chance = Field(
        0.1, description="Chance of two neighbouring words to change places; 0 if absent beside a function."
    )
    typo: Chance = Field(
        0.0,
        description="Chance of each word of three or more letters to get one slip: two exchanged, one lost, one twice.",
    )
    function: (
        Annotated[str, Field(pattern=FORM, max_length=LONGEST_TEXT, title="a function as package.module:name")] | None
    ) = Field(
        None,
        description="A function of your own as 'package.module:name', such as a back-translation: takes a list of texts, returns "
        "as many; asked once for each text, before words are changed.",
    )

    @model_validator(mode="before")
    @classmethod
    def _function_alone(cls, given: Any) -> Any:
        """Who gives a function gets what it says, and words changed only where that is asked for."""
        if isinstance(given, dict) and given.get("function") is not None:
            return {"delete": 0.0, "swap": 0.0, **given}
        return given

    @field_validator("function", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return name_of(given) if callable(given) else given

    @property
    def idle(self) -> bool:
        return self.share == 0 or (not (self.delete or self.swap or self.typo) and self.function is None)

    def control_for(self, acting: MethodConfig) -> bool:
        return self.idle and isinstance(acting, AugmentConfig) and not acting.idle


def name_of(function: Callable[..., Any]) -> str:
    """The name by which a worker process will find a function.

    Raises:
        ValueError: it cannot be found by its name.
    """
    name = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', None)}"
    try:
        found = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not function:
        raise ValueError(f"{function!r} cannot be found by its name in another process; {HINT}")
    return name


def find_function(name: str) -> Function:
    """Import a function.

    Raises:
        DataError: there is none by that name.
    """
    try:
        found: Any = pkgutil.resolve_name(name)
    except Exception as error:  # of the user's module, or that there is none
        where = f"Python looks in the folder where fairtune was started and on PYTHONPATH; {HINT}"
        raise DataError(f"augment: function '{name}' cannot be imported ({_in_a_line(error)}). {where}.") from error
    if not callable(found):
        raise DataError(f"augment: function '{name}' is a {type(found).__name__}, which cannot be called.")
    return found  # type: ignore[no-any-return]


def ask(function: Function, name: str, texts: Sequence[str]) -> list[str]:
    """What a function makes of texts, checked.

    Raises:
        DataError: it failed, or did not return as many texts.
    """
    what = f"augment: function '{name}', given {len(texts):,} texts,"
    try:
        answers: Any = function(list(texts))
    except Exception as error:
        raise DataError(f"{what} raised {_in_a_line(error)}") from error
    if isinstance(answers, str | bytes | Mapping) or not isinstance(answers, Iterable):
        raise DataError(f"{what} returned {shown(answers)}; it must return a list of texts.")
    listed = list(answers)
    if len(listed) != len(texts) or not all(isinstance(answer, str) for answer in listed):
        raise DataError(f"{what} returned {len(listed):,}, {shown(listed)}; it must return one text for each.")
    return listed


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


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


@register
class Augment(Method):
    name, config_class = "augment", AugmentConfig
    excludes = frozenset({"training texts"})
    kinds = ("classify",)
    config: AugmentConfig

    def __init__(self, config: AugmentConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self.answers: dict[str, str] = {}
        """Of the function, by text."""

    def begin(self, data: TrainingData) -> None:  # noqa: ARG002
        """What is wrong with a function is reported before the first step."""
        if self.config.function is not None and not self.config.idle:
            find_function(self.config.function)

    def texts(self, texts: Sequence[Texts], epoch: int) -> Sequence[Texts]:
        """The rows of an epoch; of a pair each text is changed by itself."""
        c = self.config
        if c.idle:
            return list(texts)
        draws = [random.Random(f"{self.seed}.{epoch}.{number}") for number in range(len(texts))]
        chosen = [draw.random() < c.share for draw in draws]
        if c.function is not None:
            self._ask(c.function, [text for row, asked in zip(texts, chosen, strict=True) if asked for text in row])
        result = []
        for row, draw, changes in zip(texts, draws, chosen, strict=True):
            if changes:
                known = [self.answers.get(text, text) for text in row]
                row = tuple(changed(text, draw, c.delete, c.swap, c.typo) for text in known)
            result.append(row)
        return result

    def _ask(self, name: str, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self.answers]
        if new:
            self.answers.update(zip(new, ask(find_function(name), name, new), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """What the function answered: it may be slow, and need not answer the same again."""
        return {"answers": self.answers} if self.config.function else {}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        self.answers.update(state.get("answers", {}))


def augment_texts(texts: Sequence[Row], epoch: int = 0, seed: int = 0, **settings: Any) -> list[Row]:
    """Training texts, or pairs of them as tuples, changed for an epoch.

    Args:
        settings: those of the method `augment`: share, delete, swap, typo, function.

    Raises:
        FairtuneError: a setting is impossible, or something is not a text.
    """
    config = AugmentConfig.read(settings, "augment_texts")
    rows = [(text,) if isinstance(text, str) else text for text in texts]
    for number, row in enumerate(rows):
        if not isinstance(row, tuple) or not all(isinstance(text, str) for text in row):
            raise DataError(f"augment_texts: entry {number} is {row!r}; each must be a text, or a tuple of texts.")
    found = Augment(config, seed).texts(rows, epoch)
    return [new[0] if isinstance(old, str) else new for old, new in zip(texts, found, strict=True)]
