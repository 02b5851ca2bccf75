"""A few hundred seeded damages of every kind of file that we read; each fails with its seed and with what was changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtune.core.errors import DataError
from tests.fuzz.mutating import damaged, damaged_json
from tests.fuzz.outcomes import judge
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_done_to_a_file_a_clean_error_or_an_equal_result_comes_of_it(name: str, tmp_path: Path) -> None:
    one = TARGETS[name]
    for seed in range(one.seeds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = one.run(seed, folder)
        assert outcome is None, f"seed {seed} (python -m tests.fuzz --target '{name}' --seed {seed})\n{outcome}"


def test_damage_is_damage_and_the_same_for_the_same_seed() -> None:
    content = b'{"a": [1, 2, {"b": "text"}]}'
    for seed in range(200):
        assert damaged(content, seed) == damaged(content, seed) != content
        assert damaged_json({"a": [1, {"b": "c"}]}, seed) == damaged_json({"a": [1, {"b": "c"}]}, seed)
    assert len({damaged(content, seed) for seed in range(200)}) > 150


def test_a_traceback_and_another_result_are_findings_and_a_clean_error_is_none() -> None:
    def fail(error: BaseException) -> None:
        raise error

    assert judge("f", b"abc", b"abd", lambda: fail(DataError("it is damaged."))) is None
    assert judge("f", b"abc", b"abd", lambda: fail(DataError(""))) is not None
    found = judge("f", b"abc", b"abd", lambda: fail(KeyError("unit")))
    assert "KeyError: 'unit'" in str(found)
    assert "b'abd'" in str(found)
    assert judge("f", b"abc", b"abd", lambda: 1, equal=1) is None
    assert "another result: 2" in str(judge("f", b"abc", b"abd", lambda: 2, equal=1))
