"""The languages of texts, by py3langid: 140 of them, offline, the same answer every time, no model that is unpickled.

Short texts are hard: a title of four words may be called anything. So a guess that is not sure counts as uncertain, the two
texts of a pair are read together, and a language is named only if a share of the sample that noise does not reach has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from fairtune.ledger.data_card import Languages
from fairtune.tasks.task import Texts

SURE = 0.25
"""A guess counts from this confidence on. XNLI's 15 languages are then right in 98 to 100 % of test pairs."""
LEAST, FEWEST = 0.02, 3
"""A language is named from this share on, and from so many texts, unless those are half of all."""
READ = 500
"""Characters that are read of a text: enough to tell."""


def languages_of(examples: Iterable[Texts]) -> Languages:
    """The languages of some texts or pairs; those without a letter are not counted."""
    texts = ("\n".join(example)[:READ] for example in examples)
    guesses = (_identifier().classify(text) for text in texts if any(map(str.isalpha, text)))
    found = Counter(str(language) if confidence >= SURE else "" for language, confidence in guesses)
    total = found.total()
    least = max(LEAST * total, min(FEWEST, total / 2))
    named = [(name, count) for name, count in sorted(found.items()) if name and count >= least]
    shares = {name: count / total for name, count in sorted(named, key=lambda item: -item[1])}
    return Languages(total, shares, (total - sum(count for _, count in named)) / total if total else 0.0)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
