"""The examples of fields: each stands where it says, and loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.study.fields import EXAMPLES, field_docs, method_names
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml

DOCS = {doc.path: doc for doc in field_docs()}
ARMS: dict[str, Any] = {"baseline": {}, "my-arm": {}}
CLASSIFY = {"study": "s", "task": "any", "model": "minilm", "arms": ARMS}
TEXT = {
    **CLASSIFY,
    "task": {"kind": "language_model", "train": "a.txt"},
    "model": "gpt-mini",
    "tokenizer": {"train": 8000},
}
BESIDE: dict[str, Any] = {"task": {"train": "a.csv"}, "tune": {"space": {"lr": [1e-5, 1e-4]}}}
"""What a section needs besides."""


def test_every_example_is_of_a_field() -> None:
    assert set(EXAMPLES) - set(DOCS) == set()


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path not in ("plugins", "augment.function")])
def test_the_example_of_a_field_loads(path: str) -> None:
    given = parse_yaml(DOCS[path].example).data
    if path.partition(".")[0] in method_names() or path.startswith("arms.NAME."):
        given = {"arms": {"baseline": {}, **(given if path == "arms.NAME.*" else {"my-arm": given})}}
    elif path != "arms.NAME":
        for name in reversed(path.split(".")[:-1]):
            given = {name: {**BESIDE.get(name, {}), **given}}
    try:
        load_study({**CLASSIFY, **given})
    except StudyError:
        load_study({**TEXT, **given})


def test_the_example_of_a_plugin_and_of_its_function_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_module.py").write_text("def translate_back(texts):\n    return texts\n")
    load_study({**CLASSIFY, "arms": {**ARMS, "my-arm": parse_yaml(DOCS["augment.function"].example).data}})
    assert parse_yaml(DOCS["plugins"].example).data == {"plugins": ["my_module"]}
