"""Tokenizers: trained on the text, always the same; the checkpoint's, a folder's or the hub's; and whether they fit a model."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import ModelError
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TokenizerSource, TrainingText, find_tokenizer, fitted, load_tokenizer
from fairtune.testing.toy import make_tokenizer
from tests.warm import data_run, light_run

STORIES = [
    f"The {kind} {animal} went to the {place}.\n“Hello”, said the Füchsin; it cost {i}½ €."
    for i, (kind, animal, place) in enumerate(
        (kind, animal, place)
        for kind in ("small", "old", "clever", "tired")
        for animal in ("fox", "owl", "badger", "hare")
        for place in ("river", "hill", "village", "edge of the wood")
    )
]
PRESET = find_model("gpt-mini")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def of(stories: list[str] = STORIES, identity: str = "stories") -> TrainingText:
    return TrainingText(identity, lambda: iter([stories[:5], stories[5:]]))


def trained(size: int = 400) -> Any:
    return load_tokenizer(Path(find_tokenizer(size, PRESET, of()).folder))


TRAIN = """
import json, sys
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import TrainingText, find_tokenizer
stories = json.loads(sys.stdin.read())
source = find_tokenizer(400, find_model("gpt-mini"), TrainingText("stories", lambda: iter([stories])))
print(json.dumps(source.as_json()))
"""


def test_the_same_text_gives_the_same_files_in_every_process(tmp_path: Path) -> None:
    found = []
    for i, threads in enumerate(("false", "true", "true")):
        environment = {**os.environ, "FAIRTUNE_CACHE": str(tmp_path / str(i)), "TOKENIZERS_PARALLELISM": threads}
        command = [sys.executable, "-c", TRAIN]
        done = light_run(command, env=environment, input=json.dumps(STORIES), text=True, check=True)
        source = TokenizerSource(**json.loads(done.stdout))
        files = {file.name: file.read_bytes() for file in Path(source.folder).iterdir() if file.name != "seal.json"}
        found.append((source.name, source.identity, source.vocabulary, files))
    assert found[0] == found[1] == found[2]
    assert set(found[0][3]) == {"tokenizer.json", "tokenizer_config.json", "vocabulary.json"}


def test_it_is_trained_once_and_found_again() -> None:
    text = of(identity="read once")
    first = find_tokenizer(420, PRESET, text)

    def never() -> Iterator[list[str]]:
        raise AssertionError("the text is not read again")

    assert find_tokenizer(420, PRESET, TrainingText("read once", never)) == first
    assert first.name == "bpe-420"
    assert first.vocabulary == len(load_tokenizer(Path(first.folder))) == 420
    assert TokenizerSource(**json.loads(json.dumps(first.as_json()))) == first


@pytest.mark.parametrize(
    "text",
    [
        "The clever badger went home.",
        "🙂🏳️‍🌈 👩‍👩‍👧 𝕳𝖊𝖑𝖑𝖔",
        "\x00\x01\x07\x08\x0b\x1b\x7f\x85\ufeff\u200b\u202e",
        "said <|endoftext|> and <|pad|> and [UNK]",
        "".join(map(chr, [*range(0x300), 0xFFFF, 0x10FFFF])),
        "",
    ],
)
def test_any_text_comes_back_from_its_tokens(text: str) -> None:
    tokenizer = trained()
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]) == text
    assert all(0 <= token < 400 for token in ids)


def test_a_small_text_gives_fewer_tokens_and_says_so() -> None:
    source = find_tokenizer(8000, PRESET, of(["the fox, the fox and the owl"], "small"))
    assert 258 < source.vocabulary < 300
    assert source.name == f"bpe-{source.vocabulary} (8000 asked for)"
    assert fitted(PRESET, source).vocabulary == source.vocabulary


def test_only_the_beginning_of_a_long_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtune.models.tokenizers.READ", 100)
    read: list[int] = []

    def long() -> Iterator[list[str]]:
        for number in range(1000):
            read.append(number)
            yield [STORIES[number % 9]]

    find_tokenizer(300, PRESET, TrainingText("long", long))
    assert len(read) < 5


def test_a_checkpoint_has_its_own_and_a_preset_has_none(tiny_model: Path) -> None:
    source = find_tokenizer(None, find_model(str(tiny_model)), of())
    assert (source.name, source.folder, source.vocabulary) == ("tiny-bert", str(tiny_model), len(make_tokenizer()))
    with pytest.raises(
        ModelError, match=r"model 'gpt-mini': a preset has no tokenizer; write `tokenizer: \{train: 8000\}`"
    ):
        find_tokenizer(None, PRESET, of())


def test_a_folder_is_known_by_what_is_in_it(tiny_model: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(tiny_model, tmp_path / "elsewhere"))
    one, other = (find_tokenizer(str(folder), PRESET, of()) for folder in (tiny_model, copied))
    assert one.identity == other.identity
    (copied / "model.safetensors").unlink()
    assert find_tokenizer(str(copied), PRESET, of()).identity == one.identity, "weights are no part of a tokenizer"
    data = json.loads((copied / "tokenizer.json").read_text())
    data["normalizer"] = None
    (copied / "tokenizer.json").write_text(json.dumps(data))
    assert find_tokenizer(str(copied), PRESET, of()).identity != one.identity


def test_a_preset_takes_the_vocabulary_of_its_tokenizer() -> None:
    tokenizer = find_tokenizer(400, PRESET, of())
    found = fitted(PRESET, tokenizer)
    assert found == find_model({"preset": "gpt-mini", "vocab_size": 400})
    roomy = find_model({"preset": "gpt-mini", "vocab_size": 512})
    assert fitted(roomy, tokenizer) == roomy, "more rows than tokens are the study's choice"
    assert fitted(find_model({"preset": "gpt-mini", "vocab_size": 400}), tokenizer).vocabulary == 400


def test_a_vocabulary_that_does_not_fit_is_refused_with_both_numbers(tiny_model: Path) -> None:
    tokenizer = find_tokenizer(400, PRESET, of())
    with pytest.raises(
        ModelError, match=r"'bpe-400' needs 400 rows .* has 399; leave vocab_size out or raise it to 400"
    ):
        fitted(find_model({"preset": "gpt-mini", "vocab_size": 399}), tokenizer)
    own = find_model(str(tiny_model))
    with pytest.raises(
        ModelError, match=rf"needs 400 rows .*'tiny-bert' has {own.vocabulary}; use the checkpoint's own"
    ):
        fitted(own, tokenizer)
    assert fitted(own, find_tokenizer(None, own, of())) == own
    untold = ModelSource("odd", "0", str(tiny_model))
    assert fitted(untold, tokenizer) == untold


HUB = """
import json, sys
from fairtune.core.errors import ModelError
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import TrainingText, find_tokenizer
for name in sys.argv[1:]:
    try:
        print(json.dumps(find_tokenizer(name, find_model("gpt-mini"), TrainingText("", lambda: iter([]))).as_json()))
    except ModelError as error:
        print("ModelError", error)
"""


def test_a_tokenizer_of_the_hub_is_found_in_its_cache(tiny_model: Path, tmp_path: Path) -> None:
    home = tmp_path / "models--org--words"
    snapshot = home / "snapshots" / COMMIT
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    shutil.copytree(tiny_model, snapshot, ignore=shutil.ignore_patterns("*.safetensors"))
    empty = tmp_path / "models--org--empty" / "snapshots" / COMMIT
    empty.mkdir(parents=True)
    names = ["org/words", "org/words@main", f"org/words@{COMMIT}", "org/none", "org/words@other", f"org/empty@{COMMIT}"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    done = data_run([sys.executable, "-c", HUB, *names], env=environment, text=True, check=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    local = find_tokenizer(str(tiny_model), PRESET, of())
    for line, name in zip(lines[:3], names, strict=False):
        assert json.loads(line) == {**local.as_json(), "name": name, "folder": str(snapshot)}
    assert f"snapshots/{COMMIT} has no tokenizer files" in lines[5]
    for line, name in zip(lines[3:5], names[3:5], strict=True):
        assert line.startswith(f"ModelError tokenizer '{name}': no folder of that name, not in the hub's cache")
        assert "or `{train: 8000}`" in line
