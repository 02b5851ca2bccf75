"""Where a tokenizer comes from (the checkpoint, a folder, the hub, the training text), loading it, and whether it fits a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairtune.core.cache import cached, cached_json, key_of
from fairtune.core.errors import DataError, ModelError
from fairtune.core.files import read_json, write_json
from fairtune.core.stages import stage
from fairtune.models.folder_safety import check_folder
from fairtune.models.sources import ModelSource, hub_folder, local_folder, with_vocabulary
from fairtune.tasks.tokens.tokenization import TokenizerFolder

VERSION = 1
"""Raised whenever the same text would give another tokenizer."""
READ = 200_000_000
"""Characters of the training text, from its beginning, that a tokenizer is trained on: more would change little and take hours."""
END, PAD = "<|endoftext|>", "<|pad|>"
HUB_FILES = ["*.json", "*.txt", "*.model"]
FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
         "merges.txt", "*.model", "tokenizer.*.json", "tekken.json", "*.spm", "*.codes", "entity_vocab.json")  # fmt: skip
"""What decides a tokenizer's output, apart from its model's type."""
WORDS = ("tokenizer.json", "vocab.json", "vocab.txt")
FACTS = "vocabulary.json"
NO_TOKENIZER = (
    "a preset has no tokenizer; write `tokenizer: {train: 8000}` to train one on the training text, or name a hub id such as "
    "`tokenizer: openai-community/gpt2`"
)
TRIED, LENGTH_TRIED = ("a good film", "the worst book"), 64
"""Texts that every tokenizer is tried on, as training and predicting will use it."""


@dataclass(frozen=True)
class TrainingText:
    """The text that a tokenizer may be trained on: equal identities mean equal documents, which are read some at a time."""

    identity: str
    documents: Callable[[], Iterator[list[str]]]


@dataclass(frozen=True)
class TokenizerSource:
    """A tokenizer, found or trained: a folder that `AutoTokenizer` loads.

    Args:
        name: as the study gives it, the checkpoint's, or `bpe-8000` for one that was trained.
        identity: sha256 of its files, wherever they lie.
        vocabulary: how many rows an embedding needs for it: its largest id and one.
    """

    name: str
    identity: str
    folder: str
    vocabulary: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find_tokenizer(spec: str | int | None, model: ModelSource, text: TrainingText) -> TokenizerSource:
    """Find a model's tokenizer, or train one.

    Args:
        spec: None is the checkpoint's own; a text is a folder or a hub id with an optional @revision; a number is the size of
            the vocabulary of one to train.
    """
    if isinstance(spec, int):
        return _trained(spec, text)
    if spec is not None:
        folder = local_folder(f"tokenizer '{spec}'", spec)
        return _in_folder(spec, _from_hub(spec)) if folder is None else _in_folder(folder.name, folder)
    if model.folder is not None:
        return _in_folder(model.name, Path(model.folder))
    if model.hub_id is not None:
        return _in_folder(model.name, _from_hub(f"{model.hub_id}@{model.revision}"))
    raise ModelError(f"model '{model.name}': {NO_TOKENIZER}.")


@lru_cache(maxsize=4)
def load_tokenizer(folder: Path, padding: bool = True) -> Any:
    """The tokenizer in a folder; checked, since a tokenizer without its vocabulary answers without an error.

    Args:
        padding: whether it must have a padding token, which token blocks do without; one that has none pads with its EOS.
    """
    from fairtune.models.transformers_files import explain_failure, read_tokenizer
    from fairtune.tasks.tokens.tokenization import encoder

    tokenizer = read_tokenizer(folder)
    with explain_failure(f"model {folder}: its tokenizer cannot be used"):
        first, second = tokenizer(TRIED[0])["input_ids"], tokenizer(TRIED[1])["input_ids"]
        for columns in (TRIED[:1], TRIED):
            encoder(tokenizer, LENGTH_TRIED, len(columns) == 2)([[text] for text in columns])
    if first == second:
        raise ModelError(
            f"model {folder}: its tokenizer gives different texts the same tokens; its vocabulary is missing."
        )
    if padding and tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise ModelError(
                f"model {folder}: its tokenizer has no padding token, and no end-of-text token (EOS) to pad with."
            )
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def fitted(model: ModelSource, tokenizer: TokenizerSource) -> ModelSource:
    """The model for this tokenizer: a preset takes its vocabulary from there; a checkpoint must have enough rows of embeddings."""
    needed = tokenizer.vocabulary
    if model.vocabulary is None:
        return model if model.preset is None else with_vocabulary(model, needed)
    if model.vocabulary < needed:
        remedy = (
            f"leave vocab_size out or raise it to {needed}"
            if model.preset is not None
            else "use the checkpoint's own tokenizer (leave `tokenizer` out) or a smaller one"
        )
        raise ModelError(
            f"tokenizer '{tokenizer.name}' needs {needed:,} rows of embeddings, but model '{model.name}' has "
            f"{model.vocabulary:,}; {remedy}."
        )
    return model


def _in_folder(name: str, folder: Path) -> TokenizerSource:
    check_folder(f"tokenizer '{name}'", folder)
    if not _files(folder):
        raise ModelError(f"tokenizer '{name}': {folder} has no tokenizer files ({', '.join(FILES)}).")
    identity = _identity(folder)

    def vocabulary() -> int:
        tokenizer = load_tokenizer(folder, padding=False)
        return int(max(len(tokenizer), 1 + max(tokenizer.get_vocab().values())))

    rows = cached_json("tokenizer", key_of([VERSION, identity]), vocabulary)
    return TokenizerSource(name, identity, str(folder), rows)


def _files(folder: Path) -> list[Path]:
    return sorted({file for pattern in FILES for file in folder.glob(pattern) if file.is_file()})


def _identity(folder: Path) -> str:
    """sha256 over the files and the model's type, by which transformers picks a class where the files name none."""
    digest = hashlib.sha256()
    for file in _files(folder):
        digest.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    config = read_json(folder / "config.json")
    digest.update(b"no model" if config is None else str(config.get("model_type")).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _from_hub(name: str) -> Path:
    """A tokenizer's folder in the hub's cache, fetched if it is not there."""
    with suppress(OSError, ValueError):  # not there, not a hub id
        found = hub_folder(name, HUB_FILES, fetch=False)
        if any(file.name in WORDS or file.suffix == ".model" for file in _files(found)):
            return found
    try:
        return hub_folder(name, HUB_FILES, fetch=True)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"tokenizer '{name}': no folder of that name, not in the hub's cache, and the hub did not give it ({reason}). Use the "
            "path of a folder, a hub id such as openai-community/gpt2 with network, or `{train: 8000}`."
        ) from None


def _trained(size: int, text: TrainingText) -> TokenizerSource:
    def build(folder: Path) -> None:
        with stage(f"training a tokenizer of {size:,} tokens on the text"):
            write_json(folder / FACTS, {"vocabulary": _train(size, text, folder)})

    def read(folder: Path) -> TokenizerSource:
        facts, _ = (json.loads((folder / name).read_bytes()) for name in (FACTS, "tokenizer.json"))  # both are whole
        reached = int(facts["vocabulary"])
        name = f"bpe-{reached}" if reached == size else f"bpe-{reached} ({size} asked for)"
        return TokenizerSource(name, _identity(folder), str(folder), reached)

    return cached("tokenizer", key_of([VERSION, READ, text.identity, size]), build, read)


def _train(size: int, text: TrainingText, folder: Path) -> int:
    """Train a byte-level BPE as GPT-2's: any text is tokens, and comes back from them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    characters = 0

    def beginning() -> Iterator[list[str]]:
        nonlocal characters
        for documents in text.documents():
            characters += sum(map(len, documents))
            yield documents
            if characters >= READ:
                return

    tokenizer.train_from_iterator(beginning(), trainer)
    if not characters:
        raise DataError("tokenizer: there is no training text to train it on; every document is blank or held out.")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": END, "pad_token": PAD}
    write_json(folder / "tokenizer_config.json", {**config, "clean_up_tokenization_spaces": False})
    return int(tokenizer.get_vocab_size())


def tokenizer_folder(folder: Path, padding: bool = True) -> TokenizerFolder:
    """The tokenizer in a folder, as tasks take it; nothing is loaded before it is needed."""
    return TokenizerFolder(folder, lambda: load_tokenizer(folder) if padding else load_tokenizer(folder, padding=False))
