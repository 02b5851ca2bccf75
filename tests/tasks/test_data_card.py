"""The data card: every count as it is in the data, languages from a sample, warnings that say what to do."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.made_mirror import make_sst2, write_split
from tests.tasks.test_duplicates import SMALL, files

from fairtune.core.numbers import as_percent
from fairtune.ledger.data_card import DataCard
from fairtune.tasks.card import builder as card_making
from fairtune.tasks.card import languages
from fairtune.tasks.card.builder import card_of
from fairtune.tasks.card.languages import languages_of

ENGLISH = "The committee will meet again in the spring to decide about the new bridge, number"
GERMAN = "Der Ausschuss wird im Frühjahr noch einmal über die neue Brücke beraten, Nummer"
WORDS = ["rain", "river", "stone", "bread", "window", "garden", "letter", "winter", "market", "candle"]


def distinct(split: str, count: int, sentence: str = ENGLISH) -> list[tuple[str, ...]]:
    return [(f"{sentence} {WORDS[i % 10]} {split} {i}", ("no", "yes")[i % 2]) for i in range(count)]


def clean(folder: Path, **changed: Any) -> dict[str, Any]:
    sizes = {"train": 40, "validation": 10, "test": 20}
    return files(folder, **{name: distinct(name, size) for name, size in sizes.items()} | changed)


def test_counts_what_is_in_a_split(tmp_path: Path) -> None:
    card = card_of(files(tmp_path, **SMALL))
    train = card.splits["train"]
    assert (train.rows, train.classes) == (8, {"no": 4, "yes": 4})
    assert (train.repeated, train.repeated_exactly) == (2, 0)
    assert (train.contradictory, train.contradictory_texts) == (2, 1)
    assert [(found.text, found.labels) for found in train.contradictions] == [("Disputed", {"no": 1, "yes": 1})]
    assert (card.splits["test"].repeated, card.splits["test"].repeated_exactly) == (1, 1)
    assert card.removal.train == 5


def test_counts_what_splits_share_in_rows_of_the_second(tmp_path: Path) -> None:
    overlaps = {(found.first, found.second): found for found in card_of(files(tmp_path, **SMALL)).overlaps}
    assert list(overlaps) == [("train", "test"), ("train", "validation"), ("validation", "test")]
    assert [found.shared for found in overlaps.values()] == [1, 1, 2]
    assert [found.rows for found in overlaps.values()] == [3, 4, 3]
    assert overlaps["validation", "test"].share == pytest.approx(2 / 3)
    assert all(found.exactly == 0 and found.first_texts is None for found in overlaps.values())


def test_pairs_are_counted_as_a_whole_and_by_their_first_text(tmp_path: Path) -> None:
    pairs = {
        "train": [("It rains.", "It is wet", "yes"), ("It rains.", "I sleep", "no"), ("Sun", "Warm", "yes")],
        "validation": [("Fog", "Grey", "no")],
        "test": [("it rains", "it is wet", "yes"), ("IT RAINS", "it is cold", "no"), ("Snow", "White", "yes")],
    }
    card = card_of(files(tmp_path, **pairs))
    found = card.overlaps[0]
    assert card.pairs
    assert (found.shared, found.exactly, found.first_texts) == (1, 0, 2)
    assert card.splits["train"].words.longest == 5


def test_sizes_of_texts_are_counted_in_words_and_characters(tmp_path: Path) -> None:
    texts = [(" ".join(["wörd"] * n) + "\u00a0end", ("no", "yes")[n % 2]) for n in range(1, 101)]
    train = card_of(clean(tmp_path, train=texts)).splits["train"]
    assert (train.words.median, train.words.p95, train.words.longest) == (51, 96, 101)
    assert train.characters.longest == 100 * 5 - 1 + 4


def test_the_contradictions_that_occur_most_are_shown_first(tmp_path: Path) -> None:
    texts = [(f"text {i % 5}", ("no", "yes")[i % 2]) for i in range(10)] + [("text 3", "no")] * 4
    train = card_of(clean(tmp_path, train=texts)).splits["train"]
    assert train.contradictory_texts == 5
    assert [found.text for found in train.contradictions] == ["text 3", "text 0", "text 1"]
    assert train.contradictions[0].labels == {"no": 5, "yes": 1}


def test_clean_data_has_no_warnings(tmp_path: Path) -> None:
    assert card_of(clean(tmp_path)).warnings == ()


@pytest.mark.parametrize(
    ("split", "rows", "expected"),
    [
        ("test", [*distinct("test", 19), distinct("train", 4)[3]], "1 of 20 test texts (5.0 %), 1 of them letter"),
        ("test", [*distinct("test", 19), distinct("validation", 1)[0]], "also in the validation split"),
        ("train", [*distinct("train", 20), *distinct("train", 2)], "2 of 22 training rows (9.1 %) repeat a text"),
        ("test", [*distinct("test", 20), *distinct("test", 2)], "test rows (9.1 %) repeat a text"),
        ("train", [(ENGLISH, "no"), (f"{ENGLISH}!", "yes"), *distinct("train", 200)], "2 training rows hold texts with"),
        ("test", distinct("test", 30)[::2] + distinct("test", 2)[1:], "15 rows of class no and 1 of yes"),
        ("validation", distinct("validation", 8)[::2], "The validation split has no row of class yes"),
        ("train", distinct("train", 60) + distinct("train", 40, GERMAN), "several languages (en 60.0 %, de 40.0 %"),
        ("test", distinct("test", 20, GERMAN), "Training texts seem to be in en, test texts in de"),
    ],
)  # fmt: skip
def test_each_warning_is_given_alone_when_its_cause_is_there(
    tmp_path: Path, split: str, rows: Any, expected: str
) -> None:
    (warning,) = card_of(clean(tmp_path, **{split: rows})).warnings
    assert expected in warning
    assert warning.count(". ") >= 1 or "; " in warning, "what was seen, and what to do"


def test_empty_texts_of_published_data_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = make_sst2(tmp_path)
    write_split(
        mirror, "sst2", "test", [{"sentence": text, "label": i % 2} for i, text in enumerate(["", " \u2003", "a film"])]
    )
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(mirror))
    card = card_of("sst2")
    assert card.splits["test"].empty == 2
    assert any("test split has 2 empty texts" in warning for warning in card.warnings)


def test_dedupe_mends_what_it_says_it_mends(tmp_path: Path) -> None:
    spec = files(tmp_path, **SMALL)
    before, after = card_of(spec), card_of(spec, dedupe=True)
    assert not before.deduplicated
    assert after.deduplicated
    assert before.removal == after.removal, "what would be taken out is what was"
    assert all(found.shared == 0 for found in after.overlaps)
    assert after.splits["test"] == before.splits["test"]
    assert not any("dedupe: true" in warning for warning in after.warnings)


def test_a_second_look_counts_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = clean(tmp_path, train=distinct("another", 30))
    first = card_of(spec)
    monkeypatch.setattr(card_making, "_split", lambda *_: pytest.fail("counted again"))
    assert card_of(spec) == first


def test_json_gives_the_same_card(tmp_path: Path) -> None:
    card = card_of(files(tmp_path, **SMALL))
    assert DataCard.from_json(card.as_json()) == card
    with pytest.raises(ValueError, match="fingerprint"):
        DataCard.from_json({"task": "x"})


def test_languages_come_from_a_fixed_sample_of_at_most_a_thousand(tmp_path: Path) -> None:
    card = card_of(clean(tmp_path, train=distinct("train", 1500)))
    assert card.splits["train"].languages.sampled == 1000
    assert card.splits["validation"].languages.sampled == 10


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"), (GERMAN, "de"), ("Le comité se réunira de nouveau au printemps.", "fr"),
        ("Комитет снова соберётся весной.", "ru"), ("委员会将在春天再次开会讨论新桥。", "zh"),
        ("ستجتمع اللجنة مرة أخرى في الربيع.", "ar"),
    ],
)  # fmt: skip
def test_languages_of_sentences(text: str, language: str) -> None:
    found = languages_of([(text,)])
    assert (found.sampled, found.shares, found.uncertain) == (1, {language: 1.0}, 0.0)


def test_rare_languages_and_doubtful_texts_are_not_named() -> None:
    found = languages_of([(ENGLISH,)] * 98 + [(GERMAN,), ("zx",), ("12 %",), ("",)])
    assert found.sampled == 100, "a text without a letter has no language"
    assert found.shares == {"en": 0.98}
    assert found.uncertain == pytest.approx(0.02)
    assert languages_of([]).shares == {}


def test_nothing_is_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("unpickled"))
    languages._identifier.cache_clear()
    assert languages_of([(ENGLISH,)]).shares == {"en": 1.0}


def test_few_are_never_shown_as_none() -> None:
    assert [as_percent(share) for share in (0, 0.0004, 0.00128)] == ["0.0 %", "under 0.1 %", "0.1 %"]


MIRROR = os.environ.get("FAIRTUNE_MIRROR", "")


def mirrored(*tasks: str) -> None:
    missing = [task for task in tasks if not MIRROR or not (Path(MIRROR) / task).is_dir()]
    if missing:
        pytest.skip(f"FAIRTUNE_MIRROR has no {missing[0]}")


def test_imdb_has_123_texts_in_both_halves_as_it_was_published() -> None:
    mirrored("imdb")
    card = card_of("imdb")
    assert card.splits["test"].classes == {"negative": 12_500, "positive": 12_500}
    by_training = {found.first: found.exactly for found in card.overlaps if found.second == "test"}
    assert sum(by_training.values()) == 123, "the published training split is train and validation here"
    assert card_of("imdb", dedupe=True).overlaps[0].shared == 0


@pytest.mark.parametrize("language", ["de", "el", "hi", "sw", "th", "ur", "zh"])
def test_languages_of_xnli(language: str) -> None:
    mirrored(f"xnli/{language}", "mnli")
    found = card_of(f"xnli/{language}").splits["test"].languages
    assert list(found.shares) == [language]
    assert found.shares[language] > 0.97
