"""MLflow: a run per arm, with the arm's runs nested below it, in one experiment.

What was sent is known from MLflow itself: every run has a tag with the mark of the row that it shows.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when mlflow is imported
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # a server that is away is tried again at the next sync
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")

from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from fairtune.core.markdown import plain
from fairtune.monitor.trackers.base import TrackerError, without_password
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy
from fairtune.settings.track import MlflowTracker

MARK, KEY, LEDGER, RUN, ARM, STUDY = (f"fairtune.{name}" for name in ("mark", "key", "ledger", "run", "arm", "study"))
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
STATES = {"finished": "FINISHED", "failed": "FAILED", "damaged": "FAILED", "interrupted": "KILLED"}
METRICS, OTHERS, PAGE = 1000, 100, 1000
"""That MLflow takes at once."""
LONGEST_NAME, LONGEST_PARAM, LONGEST_TAG = 250, 500, 5000
"""Characters; servers of earlier versions take no more."""


class MlflowRuns:
    """Writes runs of an experiment."""

    name = "mlflow"
    live = True

    def __init__(self, settings: MlflowTracker, study: str) -> None:
        for noisy in ("mlflow", "alembic"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        self._client = MlflowClient(tracking_uri=settings.uri)
        self._experiment_name = (settings.project or study)[:LONGEST_NAME]
        uri = without_password(self._client.tracking_uri)
        where = f" at {uri}" if uri.startswith("http") else f"; look at it with: mlflow ui --backend-store-uri {uri}"
        self.place = f"experiment {self._experiment_name}{where}"
        self._experiment = ""
        self._noted = False
        self._ledger = ""
        self._ids: dict[str, str] = {}
        self._tags: dict[str, dict[str, str]] = {}
        self._held: dict[str, dict[str, int]] = {}

    def begin(self, study: TrackedStudy) -> None:
        found = self._client.get_experiment_by_name(self._experiment_name)
        if found is None:
            self._experiment = self._client.create_experiment(self._experiment_name, tags={STUDY: study.study})
            self._noted = True
        elif found.lifecycle_stage != "active":
            raise TrackerError(
                f"MLflow's experiment {self._experiment_name} was deleted; restore it there, or choose another name for it."
            )
        else:
            self._experiment = found.experiment_id
            self._noted = found.tags.get(STUDY) == study.study
        self._ledger = study.identity
        self._ids, self._tags = {}, {}
        for run in self._search(study.identity):
            tags = run.data.tags
            name = tags.get(RUN) or tags.get(ARM)
            if name:
                self._ids[name], self._tags[name] = run.info.run_id, tags

    def _search(self, identity: str) -> Iterator[Any]:
        token, where = None, f"tags.`{LEDGER}` = '{identity}'"
        while True:
            page = self._client.search_runs([self._experiment], where, max_results=PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def marks(self) -> Mapping[str, str]:
        return {name: tags[MARK] for name, tags in self._tags.items() if MARK in tags}

    def sent(self, row: TrackedRow) -> Mapping[str, int]:
        held = self._held.setdefault(row.name, {})
        run = self._ids.get(row.name)
        if run is not None and row.seed is not None and self._tags.get(row.name, {}).get(KEY) not in (None, row.key):
            self._client.delete_run(run)  # it was made anew with other settings; MLflow can restore what it was
            del self._ids[row.name]
            run = None
        for name in self._client.get_run(run).data.metrics if run is not None else ():
            history = self._client.get_metric_history(run, name)
            held[name] = max((one.step for one in history), default=-1)
        return held

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        run, held = self._run(row), self._held.setdefault(row.name, {})
        last = row.ended or row.began or 0.0
        figures = {} if row.seed is None else row.figures
        told = TrackedPoint(row.step, last, {n: v for n, v in figures.items() if row.step > held.get(_name(n), -1)})
        metrics = [
            Metric(_name(name), value, _milliseconds(point.time), point.step)
            for point in (*points, told)
            for name, value in point.values.items()
        ]
        for start in range(0, len(metrics), METRICS):
            self._client.log_batch(run, metrics=metrics[start : start + METRICS])
        if MARK not in self._tags[row.name]:  # it is new, or nobody knows how far an earlier sync came
            pairs = {_name(name.replace("/", "_")): str(value)[:LONGEST_PARAM] for name, value in row.params.items()}
            params = [Param(name, text) for name, text in pairs.items()]
            for start in range(0, len(params), OTHERS):
                self._client.log_batch(run, params=params[start : start + OTHERS])
        for metric in metrics:
            held[metric.key] = max(metric.step, held.get(metric.key, -1))
        tags = [RunTag(_name(name), text[:LONGEST_TAG]) for name, text in (row.tags | {NOTE: _note(row)}).items()]
        for start in range(0, len(tags), OTHERS):
            self._client.log_batch(run, tags=tags[start : start + OTHERS])
        if row.state in STATES:
            self._client.set_terminated(run, STATES[row.state], _milliseconds(last) or None)
        else:
            self._client.update_run(run, status="RUNNING")
        self._client.set_tag(run, MARK, mark)
        self._tags[row.name][MARK] = mark

    def _run(self, row: TrackedRow) -> str:
        """MLflow's run of a row, which is made where there is none; a run's arm first."""
        if row.name in self._ids:
            return self._ids[row.name]
        tags = {name: text[:LONGEST_TAG] for name, text in row.tags.items()}
        if row.seed is not None:
            tags[PARENT] = self._ids[row.arm]
        began = None if row.began is None else _milliseconds(row.began)
        run = str(self._client.create_run(self._experiment, began, tags, row.name[:LONGEST_NAME]).info.run_id)
        self._ids[row.name], self._tags[row.name] = run, tags
        if row.seed is None:  # an arm whose run was deleted there gets its runs back
            for name, own in self._ids.items():
                if name != row.name and self._tags[name].get(RUN, "").rpartition("/")[0] == row.arm:
                    self._client.set_tag(own, PARENT, run)
        return run

    def send_study(self, study: TrackedStudy) -> None:
        if self._noted:  # an experiment that others use has their note
            note = "\n\n".join(plain(line) for line in (f"plan: {study.plan}", *study.lines))
            self._client.set_experiment_tag(self._experiment, NOTE, note[:LONGEST_TAG])

    def flush(self) -> None:
        """MLflow keeps what it was sent at once."""

    def close(self) -> None:
        """Nothing is held open."""


def _name(name: str) -> str:
    """A name that MLflow takes: at most one section, before a slash."""
    parts = [re.sub(r"[^A-Za-z0-9_ .:-]", "_", part)[: LONGEST_NAME // 2] for part in name.split("/", 1)]
    return "/".join(part if part.strip(". ") == part and part else f"_{part.strip('. ')}_" for part in parts)


def _note(row: TrackedRow) -> str:
    return plain(row.tags.get("verdict") or row.tags.get("reason") or row.state)


def _milliseconds(time: float) -> int:
    return round(1000 * time)
