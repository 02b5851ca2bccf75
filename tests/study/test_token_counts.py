"""Numbers of tokens as a study file writes them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fairtune.study.fields import field_docs
from fairtune.study.problems import StudyError
from fairtune.study.schema import study_json_schema
from fairtune.study.study_file import load_study

STUDY = {"study": "s", "task": "tinystories", "model": "m", "arms": {"baseline": {}}}


def read(written: str) -> int | None:
    """The number, as YAML has it."""
    return load_study({**STUDY, "train": {"tokens": yaml.safe_load(written)}}).train.tokens


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("100M", 100_000_000),
        ("2.5B", 2_500_000_000),
        ("300k", 300_000),
        ("0.3M", 300_000),  # a float of 0.3 would not be whole
        ("5 M", 5_000_000),
        ("1", 1),
        ("100_000_000", 100_000_000),
        ("null", None),
    ],
)
def test_counts_are_read_exactly(written: str, tokens: int | None) -> None:
    assert read(written) == tokens


@pytest.mark.parametrize(
    "written", ["0", "-5", "1.5", "0k", "0.0001k", "10T", "M", "'100'", "true", "1e3M", "[1]", "-1M"]
)
def test_anything_else_is_refused_with_what_is_allowed(written: str) -> None:
    with pytest.raises(
        StudyError,
        match=r"train\.tokens: found .*allowed: a whole number from 1 to 1,000,000,000,000,000, or a count such as 300k",
    ):
        read(written)


def test_an_arm_may_have_its_own_and_the_schema_and_the_help_know_it() -> None:
    study = load_study({**STUDY, "train": {"tokens": "1M"}, "arms": {"baseline": {}, "less": {"tokens": "10k"}}})
    assert [study.settings(arm).tokens for arm in study.arms] == [1_000_000, 10_000]
    schema: dict[str, Any] = study_json_schema()["$defs"]["Train"]["properties"]["tokens"]
    assert "language model" in schema["description"]
    assert any(doc.path == "train.tokens" and "100M" in doc.allowed for doc in field_docs())
