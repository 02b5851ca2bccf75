"""TensorBoard: one event file per row, below a folder of the study; arms' rows stand above the folders of their runs.

A row's file is only ever added to, record by record, so a page that is open follows it. What it holds is read back when nobody
remembers: a record that a killed sync cut off is cut away, and what stands before it is not written again.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams import plugin_data_pb2, summary_v2
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

from fairtune.core.markdown import plain
from fairtune.monitor.trackers.base import MarkFile, TrackerError
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy
from fairtune.settings.track import TensorboardTracker

MARKS = "fairtune-marks.json"
FILE = "events.out.tfevents.{time:010d}.fairtune"
"""TensorBoard takes a file whose name has `tfevents` in it."""
OURS = "events.out.tfevents.*.fairtune*"
HEAD, SUM = 12, 4
"""Bytes before a record, of which eight are its length, and after it."""
LONGEST = 200
SUMMARY = "fairtune"


@dataclass
class _Held:
    """What a row's file holds already: the last step of each curve, and how its texts and its end were last told."""

    steps: dict[str, int] = field(default_factory=dict)
    last: dict[str, bytes] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        for value in event.summary.value:
            self.steps[value.tag] = max(event.step, self.steps.get(value.tag, -1))
            if value.WhichOneof("value") != "simple_value":
                self.last[value.tag] = value.SerializeToString(deterministic=True)

    def has(self, event: Event) -> bool:
        """Whether an event that is no curve's would say what was said last."""
        return bool(event.summary.value) and all(
            self.steps.get(value.tag, -1) >= event.step
            if value.WhichOneof("value") == "simple_value"
            else self.last.get(value.tag) == value.SerializeToString(deterministic=True)
            for value in event.summary.value
        )


class TensorboardFiles:
    """Writes event files."""

    name = "tensorboard"
    live = True

    def __init__(self, settings: TensorboardTracker, study: str) -> None:
        self._root = Path(settings.folder)
        self._folder = self._root / safe_name(study)
        self.place = f"{self._folder}; look at it with: tensorboard --logdir {self._root}"
        self._marks = MarkFile(self._folder / MARKS)
        self._identity = ""
        self._held: dict[str, _Held] = {}

    def begin(self, study: TrackedStudy) -> None:
        other = self._marks.content.get("ledger")
        if other not in (None, study.identity):
            raise TrackerError(
                f"{self._folder} holds the study {study.study} of another runs folder; delete it, or choose another folder."
            )
        self._identity = study.identity
        self._folder.mkdir(parents=True, exist_ok=True)

    def marks(self) -> Mapping[str, str]:
        """Those of rows whose file is as long as it was when the mark was kept."""
        found = self._marks.marks()
        return {name: mark for name, mark in found.items() if self._is_whole(self._marks.rows[name])}

    def _is_whole(self, row: Mapping[str, object]) -> bool:
        path = self._folder / str(row.get("file"))
        return path.is_file() and path.stat().st_size == row.get("size")

    def sent(self, row: TrackedRow) -> Mapping[str, int]:
        folder, held = self._folder_of(row), self._held.setdefault(row.name, _Held())
        for path in sorted(folder.glob(OURS)):
            if not path.name.endswith(_ending(row)):
                path.unlink()  # of a run that was made anew with other settings
                continue
            records = list(_read(path))
            for event, _ in records:
                held.note(event)
            os.truncate(path, records[-1][1] if records else 0)
        return held.steps

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        folder = self._folder_of(row)
        folder.mkdir(parents=True, exist_ok=True)
        path = next(folder.glob(f"*{_ending(row)}"), None)
        events: list[Event] = []
        if path is None:
            path = folder / (FILE.format(time=int(row.began or 0)) + _ending(row))
            events.append(Event(wall_time=row.began or 0.0, file_version="brain.Event:2"))
            if row.seed is not None:  # runs of an arm make one group, whose figures TensorBoard averages
                params = {name: value for name, value in row.params.items() if name != "seed"}
                summary = summary_v2.hparams_pb(params, trial_id=row.arm, start_time_secs=row.began or 0.0)
                events.append(Event(wall_time=row.began or 0.0, summary=summary))
        events += [_scalars(point.step, point.time, point.values) for point in points]
        last, told = row.ended or row.began or 0.0, []
        if row.seed is not None and row.figures:
            told.append(_scalars(row.step, last, row.figures))
        told.append(_text(SUMMARY, row.step, last, [f"{name}: {text}" for name, text in row.tags.items()]))
        if row.state in ("finished", "failed", "damaged") and row.seed is not None:
            told.append(Event(wall_time=last, summary=_session_end(row.state == "finished", last)))
        held = self._held.setdefault(row.name, _Held())
        events += [event for event in told if not held.has(event)]
        _append(path, events)
        for event in events:
            held.note(event)
        relative = path.relative_to(self._folder).as_posix()
        self._marks.keep(row.name, mark, file=relative, size=path.stat().st_size)

    def send_study(self, study: TrackedStudy) -> None:
        """A text of the study, in a file of its own that is written anew."""
        path = self._folder / (FILE.format(time=0) + "-study")
        aside = path.with_name(".study.writing")
        aside.unlink(missing_ok=True)
        events = [Event(file_version="brain.Event:2"), _text("study", 0, 0.0, [f"plan: {study.plan}", *study.lines])]
        _append(aside, events)
        if path.is_file() and path.read_bytes() == aside.read_bytes():
            aside.unlink()
        else:
            aside.replace(path)

    def flush(self) -> None:
        self._marks.save(ledger=self._identity)

    def close(self) -> None:
        self.flush()

    def _folder_of(self, row: TrackedRow) -> Path:
        own = self._folder / safe_name(row.arm)
        return own if row.seed is None else own / f"seed-{row.seed}"


def safe_name(name: str) -> str:
    """A name as that of one folder, whatever it is."""
    found = quote(name, safe=" +@=,")
    found = found if found.strip(".") else found.replace(".", "%2E")
    return found[:LONGEST] or "%00"


def _ending(row: TrackedRow) -> str:
    return f"-{safe_name(row.key)[:24]}" if row.seed is not None else "-arm"


def _scalars(step: int, time: float, values: Mapping[str, float]) -> Event:
    found = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
    return Event(wall_time=time, step=step, summary=Summary(value=found))


def _text(tag: str, step: int, time: float, lines: Sequence[str]) -> Event:
    """Lines that TensorBoard shows as Markdown; whatever is in them is no markup."""
    value = Summary.Value(
        tag=tag,
        metadata=text_metadata.create_summary_metadata(display_name=tag, description=""),
        tensor=make_tensor_proto(["\n\n".join(plain(line) for line in lines).encode("utf-8", "replace")]),
    )
    return Event(wall_time=time, step=step, summary=Summary(value=[value]))


def _session_end(well: bool, time: float) -> Summary:
    """What TensorBoard's table of settings says of how a run ended."""
    end = plugin_data_pb2.SessionEndInfo(status=1 if well else 2, end_time_secs=time)
    content = hparams_metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=end))
    tag = hparams_metadata.SESSION_END_INFO_TAG
    return Summary(value=[Summary.Value(tag=tag, metadata=content, tensor=hparams_metadata.NULL_TENSOR)])


def _append(path: Path, events: Sequence[Event]) -> None:
    with path.open("ab") as handle:
        writer = RecordWriter(handle)
        for event in events:
            writer.write(event.SerializeToString(deterministic=True))
        writer.flush()
        os.fsync(handle.fileno())


def _read(path: Path) -> Iterator[tuple[Event, int]]:
    """The whole records of a file, each with the place where it ends."""
    content, at = path.read_bytes(), 0
    while at + HEAD <= len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        end = at + HEAD + length + SUM
        if end > len(content):
            return
        event = Event()
        event.ParseFromString(content[at + HEAD : at + HEAD + length])
        yield event, end
        at = end
