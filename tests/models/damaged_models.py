"""Model folders with one thing wrong, drawn from a seed: what a hostile or careless hand, or a bad disk, makes of them."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtune.classifier.predictor import Predictor
from fairtune.execution.inspection import inspect_model
from fairtune.models.loader import load_classifier
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.models.transformers_files import explain_failure

HUGE = 10**12
VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 3, 10**6, HUGE, -HUGE, 1e400, float("nan"), 0.5, "", "x", "0", "é\x1b[2J", [], [1], [[[]]], {},
    {"a": 1}, "../../outside", "a" * 5000,
)  # fmt: skip
"""What a field is set to; 1e400 is written as Infinity, which Python's JSON reads."""
NOTHING = object()


def use(folder: Path, inspected: bool) -> None:
    """Use a model as inspecting and predicting do; inspecting takes longest."""
    source = find_model(str(folder))
    if inspected:
        load_tokenizer.cache_clear()
        inspect_model(source)
    tokenizer = load_tokenizer.__wrapped__(folder)
    network = load_classifier(source, ("a", "b"), tokenizer).network
    with explain_failure("the folder: no text goes through it"):
        Predictor(network, tokenizer, 8, "cpu").logits([("a good film",)])


def damaged(folder: Path, seed: int) -> str:
    """Damage a folder that holds a model (config.json, model.safetensors, tokenizer files) in place, by one draw.

    Returns:
        What was done, for messages.
    """
    draw = random.Random(seed)
    kind = draw.choice(KINDS)
    return f"seed {seed}: {kind(folder, draw)}"


def _field(folder: Path, draw: random.Random) -> str:
    """Another value for some field of a file of settings."""
    file = draw.choice(_settings(folder))
    content = json.loads(file.read_text(encoding="utf-8"))
    holder, key = draw.choice(_places(content))
    value = draw.choice((*VALUES, NOTHING))
    if value is NOTHING:
        del holder[key]
    else:
        holder[key] = value
    file.write_text(json.dumps(content), encoding="utf-8")
    return f"{file.name}: {key!r} " + ("removed" if value is NOTHING else f"= {value!r:.60}")


def _config_field(folder: Path, draw: random.Random) -> str:
    """Another value for one of the fields that decide a network's shape, or one that is not there yet."""
    file = folder / "config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    more = ("auto_map", "quantization_config", "text_config", "layer_types", "num_labels", "id2label", "dtype",
            "chunk_size_feed_forward", "pad_token_id", "is_decoder", "tie_word_embeddings", "attn_implementation",
            "return_dict", "problem_type",
            "output_attentions", "pruned_heads", "transformers_weights", "configuration_files", "rope_parameters")  # fmt: skip
    key = draw.choice((*content, *more))
    content[key] = value = draw.choice(VALUES)
    file.write_text(json.dumps(content), encoding="utf-8")
    return f"config.json: {key!r} = {value!r:.60}"


def _bytes(folder: Path, draw: random.Random) -> str:
    """Some bits of a file flipped, most often in its beginning, where headers are."""
    file = draw.choice(_files(folder))
    content = bytearray(file.read_bytes())
    end = min(len(content), draw.choice((16, 600, len(content))))
    places = [draw.randrange(end) for _ in range(draw.choice((1, 1, 3)))]
    for place in places:
        content[place] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    return f"{file.name}: bits flipped at {places}"


def _cut(folder: Path, draw: random.Random) -> str:
    file = draw.choice(_files(folder))
    content = file.read_bytes()
    size = draw.choice((0, 1, 8, 9, len(content) // 2, len(content) - 1, draw.randrange(len(content))))
    file.write_bytes(content[:size])
    return f"{file.name}: cut to {size} of {len(content)} bytes"


def _whole(folder: Path, draw: random.Random) -> str:
    """Something quite different in a file of settings."""
    file = draw.choice(_settings(folder))
    deep = 100_000
    contents = (
        "[]",
        "null",
        "3",
        '"x"',
        "{}",
        "",
        "\0",
        "[" * deep + "]" * deep,
        '{"a":' * deep + "1" + "}" * deep,
        "\ufeff{}",
    )
    content = draw.choice(contents)
    file.write_text(content, encoding="utf-8")
    return f"{file.name}: {content[:10]!r} ({len(content)} characters)"


def _header(folder: Path, draw: random.Random) -> str:
    """A header of the weights that lies: of lengths, shapes, types, places or names."""
    file = folder / "model.safetensors"
    content = file.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    what = draw.choice(("length", "shape", "dtype", "offsets", "name", "gone", "nothing", "metadata"))
    name = draw.choice([key for key in header if key != "__metadata__"])
    if what == "length":
        wrong = draw.choice((0, 1, size - 1, size + 1, 10**9, 2**63, 2**64 - 1))
        file.write_bytes(struct.pack("<Q", wrong) + content[8:])
        return f"{file.name}: header of {wrong} bytes"
    if what == "shape":
        header[name]["shape"] = draw.choice(([], [HUGE], [2**40, 2**40], [-1], ["x"], [1, 1], "x", None))
    elif what == "dtype":
        header[name]["dtype"] = draw.choice(("F64", "I8", "F8_E4M3", "X", 3, None))
    elif what == "offsets":
        header[name]["data_offsets"] = draw.choice(
            ([0, 0], [0, HUGE], [HUGE, 0], [-1, 3], [0], "x", None, [0, len(data)])
        )
    elif what == "name":
        header[draw.choice(("x", "", "../x", "a" * 5000, "\x1b[2J"))] = header.pop(name)
    elif what == "gone":
        del header[name]
    elif what == "nothing":
        header, data = {}, b""
    else:
        header["__metadata__"] = draw.choice(({"format": "tf"}, {"format": 3}, [], "x", {}))
    written = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(written)) + written + data)
    return f"{file.name}: {what} of {name} in the header"


def _index(folder: Path, draw: random.Random) -> str:
    """An index beside or in place of the single file, which names what it should not."""
    weights, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    shard = draw.choice(
        ("a.safetensors", "w.bin", "../w.safetensors", "/etc/passwd", "sub/a.safetensors", "", "\0.safetensors")
    )
    if draw.random() < 0.8:
        weights.rename(folder / "a.safetensors")
    homes = draw.choice(({"x": shard}, {"x": shard, "y": 3}, {"x": [shard]}, [shard], {}, None, 3, shard))
    content: Any = {"weight_map": homes, "metadata": draw.choice(({}, {"total_size": "x"}, None, [], 3))}
    for missing in ("metadata", "weight_map"):
        if draw.random() < 0.2:
            del content[missing]
    index.write_text(json.dumps(content))
    return f"{index.name}: {content}"


KINDS: tuple[Callable[[Path, random.Random], str], ...] = (
    _field, _field, _config_field, _config_field, _bytes, _bytes, _cut, _whole, _header, _index,
)  # fmt: skip


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and file.stat().st_size)


def _settings(folder: Path) -> list[Path]:
    return [file for file in _files(folder) if file.suffix == ".json"]


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value that can be set, those of long lists and vocabularies seldom."""
    found: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys[:40]:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found
