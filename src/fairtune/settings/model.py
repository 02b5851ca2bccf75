"""A model that is trained from scratch, and a tokenizer that is trained for it, as a study file has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairtune.settings.values import LONGEST_NAME, Number, Place, Section, Whole


class PresetModel(Section):
    """A model with fresh weights, of a size that has a name."""

    preset: str = Field(min_length=1, max_length=LONGEST_NAME, title="a name")
    """Its name, such as gpt-mini; `fairtune inspect NAME` shows it."""
    vocab_size: Whole | None = Field(None, ge=1, le=1_000_000)
    """Rows of its embedding; null takes what the tokenizer needs."""
    context: Whole | None = Field(None, ge=8, le=131_072)
    """Positions, the longest input in tokens; null takes the preset's."""
    dropout: Number | None = Field(None, ge=0, lt=1)
    """Chance to drop, everywhere; null takes the preset's."""


class TrainedTokenizer(Section):
    """A tokenizer of the study's own: a byte-level BPE."""

    train: Whole = Field(ge=258, le=1_000_000)
    """Size of the vocabulary that is learned from the training text: 256 bytes, two marks, and what is learned."""


ModelName = Annotated[Place, Field(title="a name, a folder or a hub id")]
Model = ModelName | PresetModel
Tokenizer = ModelName | TrainedTokenizer
