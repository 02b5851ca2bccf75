"""Cautions about one training run: settings with which it learns nothing, and texts that its model cannot read.

A plan and `fairtune train` give the same ones; a plan adds the names of arms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from fairtune.core.cautions import Caution
from fairtune.core.numbers import as_percent
from fairtune.settings.sections import Train
from fairtune.tasks.definitions import LANGUAGES
from fairtune.tasks.task import Split

HIGHEST_RATE = 0.05
"""Weights are drawn with a standard deviation of about 0.02, and AdamW moves each by about the learning rate in a step."""
SAMPLE = 200
NOT_LATIN = 0.5
"""The share of letters outside the Latin script above which a sample of texts is taken to be in another."""
ENGLISH = re.compile(
    r"minilm|all-minilm-.+|minilm-l\d+-h384-uncased|bert-tiny|bert-mini|bert-small|bert-medium|bert_uncased_l-.+"
    r"|(distil)?bert-(base|large)-(un)?cased(-.+)?|(distil)?roberta-(base|large)|(distil)?gpt2(-medium|-large|-xl)?"
    r"|deberta-(v3-)?(xsmall|small|base|large|xlarge)|electra-(small|base|large)-(discriminator|generator)"
    r"|albert-(base|large|xlarge|xxlarge)-v\d|scibert_.+|mpnet-base|modernbert-(base|large)|pythia-.+"
)
"""Well-known checkpoints that were pretrained on English alone, by the last part of their names in lower case."""


def setting_cautions(train: Train, steps: int, highest: float) -> Iterator[Caution]:
    """What a run's schedule and its rate, or the highest that trials may choose, let it learn in so many optimizer steps."""
    warmup = train.warmup_steps(steps)
    if train.warmup >= 1 and warmup >= steps:
        yield Caution(
            "warning",
            "warmup-long",
            f"warmup is {warmup:,} steps and training has {steps:,}",
            f"the learning rate is still rising when training ends, at {as_percent((steps - 1) / warmup)} of the rate that is set",
            "Set `warmup: 0.1`, a tenth of the steps",
        )
    if highest > HIGHEST_RATE:
        yield Caution(
            "warning",
            "rate-high",
            f"the learning rate is {highest:.2g} at its peak, above {HIGHEST_RATE:g}",
            "AdamW moves each weight by about that much in a step, which is more than most weights are, so training diverges",
            "Rates of fine-tuning are 1e-5 to 1e-3; check for a lost exponent, as in 3 for 3e-5",
        )


def language_caution(task: str, splits: Iterable[Split], model: str) -> Caution | None:
    """A warning where a model certainly does not know the language of the texts, by their letters or the name of the task."""
    if not ENGLISH.fullmatch(model.partition("@")[0].rpartition("/")[2].lower()):
        return None
    family, language, *_ = [*task.split("/"), ""]
    named = family == "xnli" and language in LANGUAGES and language != "en"
    if not named and not any(map(_is_foreign, splits)):
        return None
    texts = f"the texts of {task} are not in English" if named else f"most letters of {task} are not Latin"
    return Caution(
        "warning",
        "language-unknown",
        f"{texts}, and {model} was pretrained on English alone",
        "a model that cannot read the texts learns little from them, and its scores say little about the method",
        "Use a multilingual model, such as google-bert/bert-base-multilingual-cased or FacebookAI/xlm-roberta-base, or texts in "
        "the model's language",
    )


def _is_foreign(split: Split) -> bool:
    """Whether most letters are outside the Latin script, in a sample of the texts."""
    rows = np.unique(np.linspace(0, len(split) - 1, min(SAMPLE, len(split))).astype(np.int64))
    letters = [ord(sign) for parts in split.take(rows).texts for part in parts for sign in part if sign.isalpha()]
    return sum(sign > 0x24F and not 0x1E00 <= sign <= 0x1EFF for sign in letters) > NOT_LATIN * len(letters)
