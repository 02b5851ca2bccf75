"""Hashes rows while they are read: here and, where there are many, in a process for each further core.

Such a process is told where in the Arrow file, which is being written, a batch is, and appends its hashes to a file of its own. So
neither ever waits for the other: as long as all have enough to do, this process hashes too. What a process that died leaves undone
is done here. The hashes are the same whoever made them.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from fairtune.core.machine import available_cores
from fairtune.tasks.helper_process import end_helper, helper_pipes, start_helper
from fairtune.tasks.reading.row_hashes import hash_batch, hash_table
from fairtune.tasks.text_hashes import Hashes

FEW_ROWS = 50_000
"""Rows that are hashed before another process would have started."""
MOST_PROCESSES = 16
AHEAD = 3
"""Batches in work for each process, so that none waits for the next."""


@dataclass
class HashProcess:
    """The parent's hold on such a process.

    Args:
        file: where it puts its hashes.

    Attributes:
        given: the place of each batch that it was given, in order, and where its hashes end.
    """

    process: subprocess.Popen[bytes]
    file: Path
    given: list[tuple[int, int]] = field(default_factory=list)
    done: int = 0

    def waiting(self) -> int:
        """How many batches it has still to do."""
        size = self.file.stat().st_size
        while self.done < len(self.given) and self.given[self.done][1] <= size:
            self.done += 1
        return len(self.given) - self.done

    def give(self, place: int, start: int, size: int, answer: int) -> bool:
        """Tell it where a batch is; False if it is no more.

        Args:
            answer: bytes of the hashes.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{start} {size}\n".encode())
            self.process.stdin.flush()
        except OSError:
            return False
        self.given.append((place, (self.given[-1][1] if self.given else 0) + answer))
        return True

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """The hashes of each batch that it did."""
        self.process.communicate()
        yield from _answers(self.file, self.given)


class RowHasher:
    """The hashes of all rows of a file.

    Args:
        file: the Arrow file that is being written.
        texts: the columns that make an example.
        placed: whether also what decides which rows are held out is asked for.
    """

    def __init__(self, file: Path, texts: Sequence[str], placed: bool) -> None:
        self._file, self._texts, self._placed = file, list(texts), placed
        self._rows: list[int] = []
        self._own = file.with_name(f"{file.name}.own")
        self._given: list[tuple[int, int]] = []
        self._processes: list[HashProcess] = []
        self._begun = False

    def __enter__(self) -> RowHasher:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in self._processes:
            end_helper(one.process)

    def add(self, batch: Any, start: int, size: int) -> None:
        """A batch that has just been written at this place of the file."""
        place = len(self._rows)
        if not self._begun and sum(self._rows) > FEW_ROWS:  # never the first batch, which has the file's head before it
            self._begun = True
            self._begin(batch.schema)
        self._rows.append(len(batch))
        waiting = {one.waiting(): one for one in reversed(self._processes)}
        least = min(waiting, default=AHEAD)
        if least < AHEAD and waiting[least].give(place, start, size, len(batch) * self._bytes):
            return
        with self._own.open("ab") as own:  # a file here too: many small arrays would leave holes in memory
            own.write(hash_batch(batch, self._texts, self._placed).tobytes())
            self._given.append((place, own.tell()))

    def columns(self) -> dict[str, Any]:
        """The hashes as Arrow's columns, once the file is whole."""
        import pyarrow as pa

        ends = np.cumsum([0, *self._rows])
        hashes = [np.empty(ends[-1], dtype=np.uint64) for _ in range(self._bytes // 8)]

        def fill(place: int, found: Hashes) -> None:
            for column, part in zip(hashes, found, strict=True):
                column[ends[place] : ends[place + 1]] = part

        left = set(range(len(self._rows)))
        done = [_answers(self._own, self._given), *(one.finish() for one in self._processes)]
        for place, content in itertools.chain.from_iterable(done):
            fill(place, np.frombuffer(content, dtype=np.uint64).reshape(len(hashes), -1))
            left.remove(place)
        with pa.OSFile(str(self._file), "rb") as source, pa.ipc.open_file(source) as reader:
            for place in sorted(left):
                fill(place, hash_batch(reader.get_batch(place), self._texts, self._placed))
        return hash_table(hashes)

    @property
    def _bytes(self) -> int:
        return 8 * (3 if self._placed else 2)

    def _begin(self, schema: Any) -> None:
        for number in range(min(available_cores() - 1, MOST_PROCESSES)):
            answers = self._file.with_name(f"{self._file.name}.{number}")
            settings = {
                "file": str(self._file), "answers": str(answers), "texts": self._texts, "placed": self._placed,
                "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
            }  # fmt: skip
            try:
                answers.touch()
                process = start_helper("fairtune.tasks.reading.row_hasher")
            except OSError:  # no room for more processes: fewer do it too
                return
            self._processes.append(HashProcess(process, answers))
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(settings).encode() + b"\n")
                process.stdin.flush()
            except OSError:
                pass  # it is no more, which is seen when it is given something


def _answers(file: Path, given: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """The hashes in a file, by the place of their batch; one that is not there as a whole is left out."""
    first = 0
    with file.open("rb") as content:
        for place, end in given:
            found = content.read(end - first)
            if len(found) < end - first:
                return
            yield place, found
            first = end


def _serve() -> None:
    """Hash batch for batch until the input ends."""
    given, _ = helper_pipes()
    import pyarrow as pa

    settings = json.loads(given.readline())
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(settings["schema"])))
    with Path(settings["file"]).open("rb") as file, Path(settings["answers"]).open("ab", buffering=0) as answers:
        for line in given:
            start, size = map(int, line.split())
            file.seek(start)
            batch = pa.ipc.read_record_batch(pa.py_buffer(file.read(size)), schema)
            answers.write(hash_batch(batch, settings["texts"], settings["placed"]).tobytes())


if __name__ == "__main__":
    _serve()
