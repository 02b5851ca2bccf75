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
        ("5E+3", 5000.0),
        (".5", 0.5),
        ("007", 7),
        ("no", "no"),
        ("null-model", "null-model"),
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


def test_several_merges_keep_the_order_and_the_precedence_that_yaml_gives_them() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {z: 2, y: 2}\nc: {own: 0, <<: [*a, *b]}\nd: {<<: *a, <<: *b, x: 9}\n"
    data = parse_yaml(text).data
    assert list(data["c"].items()) == [("z", 2), ("y", 1), ("x", 1), ("own", 0)], "what is listed first wins"
    assert list(data["d"].items()) == [("x", 9), ("y", 2), ("z", 2)]
    assert parse_yaml("'<<': 3\n").data == {"<<": 3}


@pytest.mark.parametrize(
    "bomb",
    [
        "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 60)),
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]\n" for i in range(1, 40)),
        "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{l: *a{i - 1}, r: *a{i - 1}}}\n" for i in range(1, 40)),
        "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" if i else "a0: &a0 {x: 1}\n" for i in range(400)),
        "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" if i else "a0: &a0 {x: 1}\n" for i in range(400))
        + "<<: *a399",
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 100)),
    ],
    ids=["merged twice", "lists", "mappings", "a long chain", "merged from the top", "deep"],
)
def test_aliases_that_stand_for_too_much_are_refused_while_they_are_counted(bomb: str) -> None:
    with pytest.raises(YamlProblem, match=r"aliases spelt out|nested too deeply"):
        parse_yaml(bomb)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice, first on line 1"),
        ("x: [{b: 1,\n b: 2}]\n", 2, "'b' is given twice"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("? [a]\n: b\n", 1, "key must be a plain text"),
        ("a: !!python/object:os.system x\n", 1, "not allowed"),
        ("a: !mine {b: 1}\n", 1, "not allowed"),
        ("a: !!str 3\n", 1, "not allowed"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ('a: 1\nb: "open\n', 3, "end of stream"),
        ("a:\n\tb: 1\n", 2, "\\t"),
        ("a: 1\nb: \x01\n", 2, "is not allowed"),
        ("a: 1\nb: {c: 1\n", 3, "expected"),
        ("a: {<<: 3}\n", 1, "merging"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: " + "[" * 1500, 1, "nested too deeply"),
        ("".join(" " * i + "a:\n" for i in range(100)), 51, "nested too deeply"),
        ('a: 1\nb: "\\U00110000"\n', 2, "an escape or a directive"),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1\n", 1, "an escape or a directive"),
        ("a: [" + "1," * 30_000 + "]", 1, "more than 20,000 values"),
        ("a: " + "x" * 1_000_001, 1, "at most 1,000,000 are read"),
        ("x: 1\na: &a {b: {<<: *a}}\n", 2, "contains itself"),
        ("a: &a {<<: [{<<: *a}]}\n", 1, "contains itself"),
    ],
)
def test_unusable_yaml_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(YamlProblem) as caught:
        parse_yaml(text)
    assert caught.value.line == line
    assert words in caught.value.message
