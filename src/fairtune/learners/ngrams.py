"""TF-IDF or counts of word and character n-grams as a sparse matrix; a pair of texts is the two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fairtune.core.errors import RunFailure
from fairtune.learners.base import Arrays
from fairtune.tasks.task import Texts

WORD = r"(?u)\b\w+\b"
MOST_FEATURES = 100_000
"""Of words, and as many of characters: the most frequent ones."""
MANY, RARE = 1_000, 2
"""From so many texts on, what occurs in fewer than so many of them is left out."""
Range = tuple[int, int]


@dataclass(frozen=True)
class Ngrams:
    """Which n-grams are counted: from so many words, or characters within words, to so many.

    Args:
        counts: keep the counts as they are, without TF-IDF.
    """

    words: Range
    characters: Range | None = None
    counts: bool = False

    def __str__(self) -> str:
        counted = {"words": self.words, "characters": self.characters}
        return " + ".join(f"{what} {'-'.join(map(str, dict.fromkeys(n)))}" for what, n in counted.items() if n)


class TextFeatures:
    """Vectorizers of scikit-learn that have learned their words.

    Args:
        vectorizers: of words and, if they are counted, of characters.
        columns: texts of an example: 1, or the 2 of a pair.
    """

    def __init__(self, ngrams: Ngrams, vectorizers: Sequence[Any], columns: int) -> None:
        self.ngrams, self._vectorizers, self._columns = ngrams, list(vectorizers), columns

    @classmethod
    def learn(cls, ngrams: Ngrams, texts: Sequence[Texts]) -> TextFeatures:
        """Learn which n-grams there are, and how rare each is.

        Raises:
            RunFailure: there are none.
        """
        vectorizers, every = _vectorizers(ngrams, len(texts)), [text for row in texts for text in row]
        try:
            for vectorizer in vectorizers:
                vectorizer.fit(every)
        except ValueError:  # scikit-learn's words for it are "empty vocabulary" and "no terms remain"
            raise RunFailure(
                "the training texts have no words to count; remove the arms `tfidf` and `naive-bayes`"
            ) from None
        return cls(ngrams, vectorizers, len(texts[0]))

    def __len__(self) -> int:
        return self._columns * sum(len(vectorizer.vocabulary_) for vectorizer in self._vectorizers)

    def matrix(self, texts: Sequence[Texts]) -> Any:
        """A row of TF-IDF or counts for each text or pair."""
        from scipy.sparse import hstack

        columns = [[row[place] for row in texts] for place in range(self._columns)]
        parts = [vectorizer.transform(column) for column in columns for vectorizer in self._vectorizers]
        return parts[0] if len(parts) == 1 else hstack(parts, format="csr")

    def facts(self) -> dict[str, Any]:
        """Everything but the numbers."""
        terms = [sorted(v.vocabulary_, key=v.vocabulary_.__getitem__) for v in self._vectorizers]
        return {"ngrams": asdict(self.ngrams), "columns": self._columns, "terms": terms}

    def arrays(self) -> Arrays:
        """The inverse document frequency of each term; none of counts."""
        if self.ngrams.counts:
            return {}
        return {f"rarity{place}": vectorizer.idf_ for place, vectorizer in enumerate(self._vectorizers)}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Arrays) -> TextFeatures:
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in facts["ngrams"].items()}
        ngrams = Ngrams(**given)
        vectorizers = _vectorizers(ngrams, 0)
        for place, (vectorizer, terms) in enumerate(zip(vectorizers, facts["terms"], strict=True)):
            vectorizer.vocabulary_ = {term: place for place, term in enumerate(terms)}
            vectorizer.set_params(vocabulary=vectorizer.vocabulary_)
            if not ngrams.counts:
                vectorizer.idf_ = arrays[f"rarity{place}"]
        return cls(ngrams, vectorizers, int(facts["columns"]))


def _vectorizers(ngrams: Ngrams, texts: int) -> list[Any]:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    kind = CountVectorizer if ngrams.counts else partial(TfidfVectorizer, sublinear_tf=True)
    shared: dict[str, Any] = {"min_df": RARE if texts >= MANY else 1, "max_features": MOST_FEATURES}
    found = [kind(token_pattern=WORD, ngram_range=ngrams.words, **shared)]
    if ngrams.characters:
        found.append(kind(analyzer="char_wb", ngram_range=ngrams.characters, **shared))
    return found
