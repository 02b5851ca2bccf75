"""Text for a language model together with the tokenizer that makes tokens of it: what a study trains on and reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from fairtune.core.cache import key_of
from fairtune.settings.sections import Train
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.corpora import METRIC, Corpus
from fairtune.tasks.task import SPLITS, TaskFacts
from fairtune.tasks.tokens.blocks import TokenBlocks, token_blocks
from fairtune.tasks.tokens.tokenization import TokenizerFolder


@dataclass(frozen=True)
class TextTask:
    """A corpus in tokens."""

    corpus: Corpus
    tokenizer: TokenizerFolder

    def blocks(self, split: str, train: Train) -> TokenBlocks:
        """A split as tokens, from the cache where they are in it; of the training split as many as the settings say."""
        limit = train.tokens if split == "train" else None
        return token_blocks(self.corpus, split, self.tokenizer.load(), limit)

    def examples(self, train: Train) -> int:
        """How many blocks there are to train on.

        Raises:
            DataError: not one, or there is nothing to validate on or to report.
        """
        for split in ("validation", "test"):
            self.blocks(split, train)
        return len(self.blocks("train", train).blocks(train.longest))

    @property
    def fingerprint(self) -> str:
        """The identity of every document of every split."""
        return key_of([LANGUAGE_MODEL, *(self.corpus.identity(split) for split in SPLITS)])

    def facts(self, train: Train) -> TaskFacts:
        """What a plan records, with the counts that an arm of these settings has."""
        counts = {split: asdict(self.blocks(split, train).counts) for split in SPLITS}
        return TaskFacts(
            name=self.corpus.name,
            kind=LANGUAGE_MODEL,
            metric=METRIC,
            labels=(),
            rows={split: int(found["documents"]) for split, found in counts.items()},
            source=self.corpus.source,
            fingerprint=self.fingerprint,
            hashes={split: self.corpus.identity(split) for split in SPLITS},
            counts=counts,
        )
