"""A process that tokenises: Arrow batches of texts go in, batches of tokens come out, through its pipes.

Started as `python -m fairtune.tasks.tokens.tokenizer_process`. It ends when its input ends, so also when its parent was killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtune.core.pipes import own_pipes

if TYPE_CHECKING:
    from fairtune.tasks.tokens.tokenization import Piece


class Process:
    """The parent's hold on such a process."""

    def __init__(self, settings: str, columns: int) -> None:
        import pyarrow as pa

        self._process = subprocess.Popen(
            [sys.executable, "-m", "fairtune.tasks.tokens.tokenizer_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
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
        self._process.kill()
        self._process.communicate()


def _piece(batch: Any) -> Piece:
    from fairtune.tasks.tokens.tokenization import Piece

    tokens = batch.column("tokens")
    types = batch.column("types").values.to_numpy() if "types" in batch.schema.names else None
    return Piece(tokens.values.to_numpy(), np.diff(tokens.offsets.to_numpy()), types)


def _serve() -> None:
    """Answer batch for batch until the input ends."""
    pipes = own_pipes()
    import pyarrow as pa

    from fairtune.tasks.tokens.tokenization import Encoder, Settings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    given, answers = os.fdopen(pipes[0], "rb"), os.fdopen(pipes[1], "wb")
    settings = Settings(**json.loads(given.readline()))
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
