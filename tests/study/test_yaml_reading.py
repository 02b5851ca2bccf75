"""YAML 1.2's plain scalars, lines of every value, and nothing that could run code."""

from __future__ import annotations

import math

import pytest

from fairtune.study.yaml_tree import YamlProblem, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("2e-5", 2e-5),
        ("2.0e-5", 2e-5),
        ("5E+3", 5000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-3", -3),
        ("007", 7),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("off", "off"),
        ("y", "y"),
        ("never", "never"),
        ("nothing", "nothing"),
        ("null-model", "null-model"),
        ("Nice", "Nice"),
        ("truely", "truely"),
        ("falsehood", "falsehood"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1e-4'", "1e-4"),
        ('"true"', "true"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e", "1e"),
        (".inf", math.inf),
        ("!!str 3", "3"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    found = parse_yaml(f"key: {text}\n").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_every_value_has_its_line() -> None:
    tree = parse_yaml("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n")
    assert tree.lines[("a", "b")] == 2
    assert tree.lines[("a", "c", 1)] == 5
    assert tree.lines[("a", "c", 1, "d")] == 5


def test_anchors_and_merge_keys_work_and_own_keys_win() -> None:
    text = "a: &a {lr: 1, epochs: 2}\nb: &b {<<: *a, lr: 3}\nc: *b\nd:\n  <<: [*b, {clip: 9}]\n  epochs: 7\n"
    data = parse_yaml(text).data
    assert data["b"] == data["c"] == {"lr": 3, "epochs": 2}
    assert data["d"] == {"lr": 3, "epochs": 7, "clip": 9}
    data["b"]["lr"] = 0
    assert data["c"]["lr"] == 3, "an alias is a copy: changing one place must not change another"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice, first on line 1"),
        ("x: [{b: 1,\n b: 2}]\n", 2, "'b' is given twice"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("x: 1\na: &a\n  b: {c: *a}\n", 2, "contains itself"),
        ("? [a]\n: b\n", 1, "key must be a plain text"),
        ("a: !!python/object:os.system x\n", 1, "not allowed"),
        ("a: 1\nb: !!python/object/apply:os.system [echo]\n", 2, "not allowed"),
        ("a: !!python/object/new:os.x {b: 1}\n", 1, "not allowed"),
        ("a: !mine {b: 1}\n", 1, "not allowed"),
        ("a: !!set {b}\n", 1, "not allowed"),
        ("a: !!binary aGk=\n", 1, "not allowed"),
        ("a: !!int x\n", 1, "'x'"),
        ("a: !!bool maybe\n", 1, "'maybe'"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ('a: 1\nb: "open\n', 3, "end of stream"),
        ("a:\n\tb: 1\n", 2, "\\t"),
        ("a: 1\nb: \x01\n", 2, "is not allowed"),
        ("a: 1\nb: {c: 1\n", 3, "expected"),
        ("a: {<<: 3}\n", 1, "merging"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: " + "[" * 1500, 1, "nested too deeply"),
    ],
)
def test_unusable_yaml_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(YamlProblem) as caught:
        parse_yaml(text)
    assert caught.value.line == line
    assert words in caught.value.message
