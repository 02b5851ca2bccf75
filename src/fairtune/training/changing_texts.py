"""Training texts that methods change: tokenised anew for every epoch, by the texts, the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairtune.core.errors import RunFailure
from fairtune.methods.base import Method
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import Encoded, encode


@dataclass(frozen=True)
class TrainingTexts:
    """The training split as text, and what makes tokens of it.

    Args:
        examples: how many of the split are used; None is all.
    """

    whole: Split
    tokenizer: Any
    max_length: int
    examples: int | None = None

    @cached_property
    def split(self) -> Split:
        """The examples that are used; found when they are needed, since that reads them all."""
        return fixed_sample(self.whole, self.examples)

    def encoded(self, methods: Sequence[Method], epoch: int) -> Encoded:
        """The tokens of an epoch's texts."""
        texts: Sequence[Any] = list(self.split.texts)
        for method in methods:
            texts = method.texts(texts, epoch)
        if len(texts) != len(self.split):
            raise RunFailure(f"methods made {len(texts):,} texts of {len(self.split):,}; each must stay one")
        changed = Split.of(self.split.ids, texts, self.split.labels)
        return encode(changed, self.tokenizer, self.max_length)


def that_change_texts(methods: Sequence[Method]) -> list[Method]:
    return [method for method in methods if type(method).texts is not Method.texts and not method.config.idle]
