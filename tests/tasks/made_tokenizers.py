"""Small tokenizers of language models, and corpora that are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairtune.tasks.corpora import Corpus, Part

EOS = "<|end|>"
STORIES = [
    f"The {kind} {animal} number {i} went to the {place}.\n“Hello”, said the Füchsin; it cost 3½ € 🙂."
    for i, (kind, animal, place) in enumerate(
        (kind, animal, place)
        for kind in ("small", "old", "clever", "tired")
        for animal in ("fox", "owl", "badger", "hare", "mole")
        for place in ("river", "hill", "village", "edge of the wood")
    )
]


@cache
def byte_level(size: int = 400, eos: str | None = EOS) -> Any:
    """A byte-level BPE, as GPT-2 has one: any text comes back from its tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[EOS], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(STORIES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos)


@cache
def of_words(size: int) -> Any:
    """A tokenizer with so many words: w0, w1 and so on; the last of its tokens is EOS."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{i}": i for i in range(size - 1)}
    tokenizer = Tokenizer(models.WordLevel({**words, EOS: size - 1}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=EOS)


def in_memory(chunks: list[list[str]], identity: str = "made") -> Corpus:
    """A corpus with a training split only."""

    def read() -> Iterator[list[str]]:
        yield from chunks

    return Corpus("made", "memory", {"train": Part(identity, read)})
