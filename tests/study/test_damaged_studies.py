"""A study file with any damage is refused in words, or is a study that can be planned; nothing else, and nothing slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fairtune.errors import FairtuneError
from fairtune.study.loading import check_file
from fairtune.study.plan import make_plan
from tests.study.damaged_studies import HOSTILE_YAML, damaged

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))
MUTATIONS = 160


def outcome(file: Path, plan: bool) -> str:
    """`refused` or `read`; anything but a clean refusal comes out of here as it is."""
    try:
        study = check_file(file)
        if plan:
            make_plan(study)
    except FairtuneError as error:
        told = str(error)
        told.encode()
        return "refused" if told and all(line.isprintable() for line in told.splitlines()) else f"badly told: {told!r}"
    return "read"


def test_a_damaged_study_of_ours_is_refused_or_read(tmp_path: Path) -> None:
    file, found = tmp_path / "s.yaml", []
    for seed in range(MUTATIONS):
        file.write_bytes(damaged(STUDIES[seed % len(STUDIES)].read_text(encoding="utf-8"), seed))
        found.append(outcome(file, plan=False))
    assert set(found) == {"refused", "read"}


def test_a_damaged_study_is_refused_or_planned(tmp_path: Path, tiny_model: Path, tiny_task: Any) -> None:
    study = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"steps": 3, "batch_size": 8, "max_length": 32, "warmup": 0.1},
        "seeds": [3, 5],
        "arms": {"baseline": {"lr": 1e-3}, "x": {"methods": [{"orthogonal_qk": {"layers": "0-1"}}, {"ema": {"decay": 0.9}}]}},
        "compare": {"to": "baseline", "margin": "1.5%"},
        "profiles": {"quick": {"train": {"steps": 1}, "arms": {"x": {"lr": 0.1}}}},
    }  # fmt: skip
    text = yaml.safe_dump(study, sort_keys=False)
    file, found = tmp_path / "s.yaml", []
    for seed in range(MUTATIONS // 2):
        file.write_bytes(damaged(text, 1000 + seed))
        found.append(outcome(file, plan=True))
    assert set(found) == {"refused", "read"}


@pytest.mark.parametrize("value", HOSTILE_YAML, ids=lambda value: ascii(value)[:20])
def test_no_hostile_value_gets_through_as_a_name(tmp_path: Path, value: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(f"study: {value}\ntask: movie-reviews\nmodel: minilm\narms: {{baseline: }}\n".encode())
    try:
        study = check_file(file).study
    except FairtuneError:
        return
    assert (tmp_path / "runs" / study).resolve().parent == (tmp_path / "runs").resolve()
    (tmp_path / "runs" / study).mkdir(parents=True)


def test_the_same_seed_damages_the_same() -> None:
    text = STUDIES[0].read_text(encoding="utf-8")
    assert damaged(text, 7) == damaged(text, 7)
    assert len({damaged(text, seed) for seed in range(50)}) > 40
