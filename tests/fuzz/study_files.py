"""Study files with any damage: refused in words, or read; nothing else, and nothing slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fairtune.analysis.suite_registration import register_list
from fairtune.core.files import read_sealed
from fairtune.ledger.studies import read_suite_history, record_suite, suite_folder
from fairtune.study.plan import make_plan
from fairtune.study.study_file import check_file
from fairtune.study.suite_file import load_suite
from tests.fuzz import made
from tests.fuzz.mutating import damaged as damaged_bytes
from tests.fuzz.outcomes import Outcome, judge, put
from tests.fuzz.registering import target
from tests.study.damaged_studies import damaged

SHIPPED = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))


@target("shipped studies", 120)
def shipped(seed: int, folder: Path) -> Outcome | None:
    before = SHIPPED[seed % len(SHIPPED)].read_text(encoding="utf-8")
    file = put(folder / "s.yaml", damaged(before, seed))
    return judge(file.name, before.encode(), file.read_bytes(), lambda: check_file(file))


SUITE = """\
suite: made
study: {file: s.yaml, profile: quick, set: {train.batch_size: 8}}
tasks: [sst2, {task: mrpc, set: {train.epochs: 2}}]
models: [minilm, {model: {preset: gpt-mini}, name: gpt, set: {tokenizer: {train: 500}}, group: GPT}]
profiles: {two: {suite: other, study: null, tasks: [], models: [], studies: [s.yaml, {file: s.yaml, set: {study: b, task: cola}}]}}
"""


@target("suites", 60)
def suites(seed: int, folder: Path) -> Outcome | None:
    put(folder / "s.yaml", yaml.safe_dump(_planned() | {"task": "sst2", "model": "minilm"}, sort_keys=False).encode())
    file = put(folder / "suite.yaml", damaged(SUITE, seed))
    profile = "two" if seed % 2 else None
    return judge(file.name, SUITE.encode(), file.read_bytes(), lambda: load_suite(file, profile=profile))


@target("suite records", 40)
def suite_records(seed: int, folder: Path) -> Outcome | None:
    """As on disk with any damage."""
    studies = [{"study": name, "task": name, "model": "minilm", "metric": "accuracy"} for name in ("a", "b")]
    record_suite(folder, "made", studies)
    record_suite(folder, "made", studies[:1])
    file = suite_folder(folder, "made") / "history.json"
    before, plain = file.read_bytes(), read_sealed(file)
    file.write_bytes(damaged_bytes(before, seed))

    def read() -> Any:
        found = register_list(folder, "made", studies)
        assert found.sentence
        assert all(map(str, found.changes))
        return read_suite_history(folder, "made")

    return judge(file.name, before, file.read_bytes(), read, plain["history"])


def _planned() -> dict[str, Any]:
    return {
        "study": "toy",
        "task": made.task().as_study(),
        "model": str(made.model()),
        "train": {"steps": 3, "batch_size": 8, "max_length": 32, "warmup": 0.1},
        "seeds": [3, 5],
        "arms": {"baseline": {"lr": 1e-3}, "x": {"methods": [{"orthogonal_qk": {"layers": "0-1"}}, {"ema": {"decay": 0.9}}]}},
        "compare": {"to": "baseline", "margin": "1.5%"},
        "profiles": {"quick": {"train": {"steps": 1}, "arms": {"x": {"lr": 0.1}}}},
    }  # fmt: skip


@target("planned studies", 60)
def planned(seed: int, folder: Path) -> Outcome | None:
    before = yaml.safe_dump(_planned(), sort_keys=False)
    file = put(folder / "s.yaml", damaged(before, 1000 + seed))
    return judge(file.name, before.encode(), file.read_bytes(), lambda: make_plan(check_file(file)))
