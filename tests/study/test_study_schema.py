"""The JSON schema and the field list: every field documented once, everything a user can write in them."""

from __future__ import annotations

from typing import Any

import pytest

from fairtune.methods.registry import registered
from fairtune.settings.execution import Execution
from fairtune.settings.file_task import FileTask, Holdout
from fairtune.settings.model import PresetModel, TrainedTokenizer
from fairtune.settings.sections import Compare, Train
from fairtune.study.allowed import fragment_at
from fairtune.study.fields import field_docs
from fairtune.study.problems import StudyError
from fairtune.study.schema import Arm, Study, study_json_schema
from fairtune.study.study_file import load_study

SECTIONS = [Arm, Compare, Execution, FileTask, Holdout, PresetModel, Study, Train, TrainedTokenizer]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.__name__)
def test_every_section_and_field_has_a_description(section: Any) -> None:
    assert (section.__doc__ or "").strip()
    assert [name for name, info in section.model_fields.items() if not info.description] == []


def test_every_property_of_the_json_schema_has_a_description() -> None:
    schema = study_json_schema()
    silent = []
    for name, definition in [("study", schema), *schema["$defs"].items()]:
        for key, part in definition.get("properties", {}).items():
            target = schema["$defs"].get(part.get("$ref", "").rpartition("/")[2], {})
            if not part.get("description", target.get("description")):
                silent.append(f"{name}.{key}")
    for name, method in schema["$defs"]["MethodUse"]["anyOf"][1]["properties"].items():
        assert method["description"]
        silent += [f"{name}.{key}" for key, part in method["properties"].items() if not part.get("description")]
    assert silent == []


def test_every_reference_of_the_json_schema_leads_somewhere() -> None:
    schema = study_json_schema()

    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if "$ref" in part else []
            return own + [r for value in part.values() for r in references(value)]
        return [r for value in part for r in references(value)] if isinstance(part, list) else []

    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"study", "task", "model", "arms"}
    found = references(schema)
    assert found
    assert {r for r in found if r.removeprefix("#/$defs/") not in schema["$defs"]} == set()


CASES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"seeds": [1, 2], "train": {"evaluate": 10, "clip": None}}, True),
    ({"arms": {"baseline": {}, "x": {"lr": 1e-4, "methods": ["orthogonal_qk"]}}}, True),
    ({"arms": {"x": {"methods": [{"orthogonal_qk": {"init": "keep"}}]}}}, True),
    ({"task": {"train": "a.csv", "text": ["a", "b"]}}, True),
    ({"seeds": 0}, False),
    ({"seeds": [1, 1]}, False),
    ({"arms": {}}, False),
    ({"trian": {}}, False),
    ({"arms": {"x": {"methods": ["orthogonal_kq"]}}}, False),
    ({"arms": {"x": {"methods": [{"orthogonal_qk": {"init": "head"}}]}}}, False),
    ({"arms": ["baseline", "oelm-freeze"]}, True),
    ({"arms": {"baseline": {}, "x": {"preset": "oelm-freeze", "lr": 1e-4}}}, True),
    ({"arms": {"baseline": {}, "x": {"preset": None, "methods": []}}}, True),
    ({"arms": []}, False),
    ({"arms": ["baseline", "baseline"]}, False),
    ({"arms": ["baseline", "oelm-freze"]}, False),
    ({"arms": ["baseline", {"oelm-freeze": {}}]}, False),
    ({"arms": {"x": {"preset": "oelm-freze"}}}, False),
    ({"arms": {"x": {"preset": "oelm-freeze", "methods": []}}}, False),
    ({"compare": {"margin": "1.5%"}}, True),
    ({"execution": {"ray": None, "slurm": None}}, True),
    ({"execution": {"ray": 3}}, False),
    ({"task": {"train": "a.csv", "labels": [0, 1.5, "x", True]}}, True),
    ({"task": {"train": "a.csv", "labels": [None, "x"]}}, False),
    ({"task": {"train": "a.csv", "labels": [1]}}, False),
    (
        {
            "arms": {"baseline": {}, "x": {"methods": ["focal"]}},
            "tune": {"space": {"lr": [1e-5, 1e-4], "focal": {"gamma": {"low": 1, "high": 3}}}},
        },
        True,
    ),
    ({"tune": {"space": {"focal": {"gamma": 3}}}}, False),
    ({"tune": {"space": {"focal": {}}}}, False),
    ({"tune": {"space": {}}}, False),
]


def test_the_json_schema_agrees_with_the_reader() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = study_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for study, valid in CASES:
        whole = {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}}, **study}
        assert validator.is_valid(whole) is valid, study


@pytest.mark.parametrize(("study", "valid"), CASES)
def test_the_reader_takes_what_the_schema_takes(study: dict[str, Any], valid: bool) -> None:
    whole = {"study": "s", "task": "t", "model": "m", "arms": {"baseline": {}}, **study}
    whole["compare"] = {"to": next(iter(whole["arms"]), "baseline"), **study.get("compare", {})}
    if valid:
        load_study(whole)
    else:
        with pytest.raises(StudyError):
            load_study(whole)


def test_field_docs_cover_every_field() -> None:
    docs = {doc.path.strip(): doc for doc in field_docs()}
    wanted = {name for name in Study.model_fields if name != "arms"} | {
        "arms.NAME",
        "arms.NAME.methods",
        "arms.NAME.preset",
    }
    for key, section in (("train", Train), ("compare", Compare), ("execution", Execution), ("task", FileTask)):
        wanted |= {f"{key}.{name}" for name in section.model_fields}
    wanted |= {f"task.holdout.{name}" for name in Holdout.model_fields}
    for name, registration in registered().items():
        wanted |= {f"{name}.{field}" for field in registration.config_class.model_fields}
        wanted.add(name)
    assert wanted - set(docs) == set()
    assert [path for path, doc in docs.items() if not doc.help] == []
    assert docs["study"].default == "required"
    assert docs["train.lr"].default == "2e-05"
    assert docs["train.lr"].allowed == "a number above 0"
    assert docs["train.clip"].allowed == "a number above 0, or `null`"
    assert docs["orthogonal_qk.init"].allowed.startswith("keep, headwise, ")


@pytest.mark.parametrize("field", sorted(Train.model_fields))
def test_an_arms_field_says_what_the_training_field_says(field: str) -> None:
    ours, theirs = fragment_at(("arms", "x", field)), fragment_at(("train", field))
    assert ours["description"] == theirs["description"]
