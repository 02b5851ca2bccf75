"""Names that would lead out of a folder, and what damages study files in `tests/fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.study.study_file import check_file
from tests.study.damaged_studies import HOSTILE_YAML, damaged

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))


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
