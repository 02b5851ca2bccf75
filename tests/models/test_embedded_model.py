"""The embedded MiniLM: published counts, and a method on real weights (skipped where its package is not installed)."""

from __future__ import annotations

import pytest

from fairtune.core.errors import ModelError
from fairtune.models.sources import find_model


def test_inspecting_minilm_gives_the_known_counts() -> None:
    try:
        source = find_model("minilm")
    except ModelError as error:
        pytest.skip(str(error))
    from fairtune.execution.inspection import inspect_model

    facts = inspect_model(source)
    assert facts["parameters"]["total"] == 22_713_986
    assert facts["same"] == 103
    assert list(facts["changed"]) == []
    assert list(facts["new"]) == ["classifier.weight", "classifier.bias"]
    assert facts["queries_and_keys"]["parameters"] == 6 * 2 * (384 * 384 + 384)
