"""A tokenizer that encodes batches: here, or in a process of its own, with Arrow batches going in and out through its pipes."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.helper_process import end_helper, helper_pipes, start_helper


@dataclass(frozen=True)
class Piece:
    """Some examples as tokens, one after the other.

    Args:
        types: token_type_ids where the model has them and the examples are pairs.
    """

    tokens: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.int64]
    types: npt.NDArray[np.int8] | None


@dataclass(frozen=True)
class EncoderSettings:
    """A tokenizer and how it is used, as plain data.

    Args:
        backend: the tokenizer as the `tokenizers` library writes it.
        side: where a text that is too long is cut.
        whole: texts that look like special tokens are split like any other.
    """

    backend: str
    max_length: int | None
    special: bool
    side: str
    whole: bool
    types: bool


class Encoder:
    """A tokenizer of the `tokenizers` library, set up once."""

    def __init__(self, settings: EncoderSettings) -> None:
        from tokenizers import Tokenizer

        self._settings = settings
        self._tokenizer = Tokenizer.from_str(settings.backend)
        self._tokenizer.encode_special_tokens = settings.whole
        if settings.max_length is not None:
            self._tokenizer.enable_truncation(settings.max_length, strategy="longest_first", direction=settings.side)

    def encode(self, columns: Sequence[list[str]]) -> Piece:
        texts: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = self._tokenizer.encode_batch_fast(texts, add_special_tokens=self._settings.special)
        tokens, types, lengths = array("I"), array("b"), array("q")
        for encoding in found:
            ids = encoding.ids
            tokens.extend(ids)
            lengths.append(len(ids))
            if self._settings.types:
                types.extend(encoding.type_ids)
        return Piece(
            np.frombuffer(tokens, dtype=np.uint32),
            np.frombuffer(lengths, dtype=np.int64),
            np.frombuffer(types, dtype=np.int8) if self._settings.types else None,
        )


class EncoderProcess:
    """The parent's hold on such a process."""

    def __init__(self, settings: str, columns: int) -> None:
        import pyarrow as pa

        self._process = start_helper("fairtune.tasks.tokens.encoder")
        self._schema = pa.schema([(str(place), pa.large_string()) for place in range(columns)])
        self._settings: str | None = settings
        self._writer: Any = None
        self._reader: Any = None

    def encode(self, columns: list[list[str]]) -> Piece | None:
        """The texts as tokens; None if the process is no more."""
        import pyarrow as pa

        try:
            if self._settings is not None:
                self._open(self._settings)
            if self._writer is None:
                return None
            arrays = [pa.array(column, pa.large_string()) for column in columns]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
            self._stdin.flush()
            if self._reader is None:  # there is nothing to read before the first batch: Arrow sends the schema with it
                self._reader = pa.ipc.open_stream(self._process.stdout)
            return _piece(self._reader.read_next_batch())
        except (OSError, StopIteration, pa.ArrowException):
            self._writer = None
            return None

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    def _open(self, settings: str) -> None:
        import pyarrow as pa

        self._settings = None
        self._stdin.write(settings.encode() + b"\n")
        self._writer = pa.ipc.new_stream(self._stdin, self._schema)

    def close(self) -> None:
        end_helper(self._process)


def _piece(batch: Any) -> Piece:

    tokens = batch.column("tokens")
    types = batch.column("types").values.to_numpy() if "types" in batch.schema.names else None
    return Piece(tokens.values.to_numpy(), np.diff(tokens.offsets.to_numpy()), types)


def _serve() -> None:
    """Answer batch for batch until the input ends."""
    given, answers = helper_pipes()
    import pyarrow as pa

    settings = EncoderSettings(**json.loads(given.readline()))
    encoder = Encoder(settings)
    fields = [("tokens", pa.large_list(pa.uint32()))] + (
        [("types", pa.large_list(pa.int8()))] if settings.types else []
    )
    schema = pa.schema(fields)
    with pa.ipc.open_stream(given) as reader, pa.ipc.new_stream(answers, schema) as writer:
        for batch in reader:
            piece = encoder.encode([column.to_pylist() for column in batch.columns])
            offsets = pa.array(np.concatenate([[0], np.cumsum(piece.lengths)]), pa.int64())
            arrays = [pa.LargeListArray.from_arrays(offsets, pa.array(piece.tokens))]
            if piece.types is not None:
                arrays.append(pa.LargeListArray.from_arrays(offsets, pa.array(piece.types)))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            answers.flush()


if __name__ == "__main__":
    _serve()
