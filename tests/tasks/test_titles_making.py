"""Made titles: balanced, seeded, each source title used once, every kind in about its weight."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.warm import light_run

from fairtune.core.errors import DataError
from fairtune.tasks.titles import KINDS, make_titles, read_titles
from fairtune.tasks.titles.made_titles import CORRECT, comparable, usable_titles

THINGS = ("sensor", "protein", "market", "grammar", "galaxy", "bridge", "neuron", "river", "tariff", "lattice", "virus")
WAYS = (
    "robust",
    "statistical",
    "comparative",
    "distributed",
    "molecular",
    "semantic",
    "adaptive",
    "clinical",
    "spectral",
)
ACTS = ("estimation", "analysis", "modelling", "detection", "simulation", "translation", "control", "measurement")


def correct_titles(count: int, seed: int = 1) -> list[str]:
    """Invented correct titles, all different."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        one, two, way, act = draw.choice(THINGS), draw.choice(THINGS), draw.choice(WAYS), draw.choice(ACTS)
        forms = (
            f"{way.title()} {act.title()} of {one.title()} and {two.title()} Networks in Year {draw.randint(1, 400)}",
            f"{one.title()}-{two.title()} Systems: A {way.title()} Approach to {act.title()} {draw.randint(1, 400)}",
            f"On the {act} of {one} data with {way} {two} models ({draw.randint(1, 400)} cases)",
        )
        found[draw.choice(forms)] = None
    return list(found)


TITLES = correct_titles(4000)
MADE = make_titles(TITLES, 3000, seed=3)


def test_half_are_correct() -> None:
    assert Counter(row.label for row in MADE) == {0: 1500, 1: 1500}
    assert all((row.kind == CORRECT) == (row.label == 1) for row in MADE)
    assert {row.label for row in MADE[:40]} == {0, 1}, "the rows are mixed"


def test_it_is_the_same_in_another_process() -> None:
    """Nothing may depend on the order of a set, which differs between processes."""
    code = (
        "import hashlib; from tests.tasks.test_titles_making import MADE; "
        "print(hashlib.sha256(repr(MADE).encode()).hexdigest())"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # another than this process has
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == hashlib.sha256(repr(MADE).encode()).hexdigest(), done.stderr


def test_a_source_title_is_used_once() -> None:
    originals = {row.original for row in MADE}
    assert len(originals) == len(MADE)
    assert originals <= set(TITLES)


def test_a_merged_title_uses_another_that_nothing_else_uses() -> None:
    made = make_titles(TITLES, 1000, weights={name: 0.0 for name in KINDS if name != "two_titles"})
    originals, known = {comparable(row.original) for row in made}, {comparable(title) for title in TITLES}
    joined = 0
    for row in made:
        if row.kind == "two_titles":
            rest = comparable(row.title).replace(comparable(row.original), "")
            joined += rest in known
            assert rest not in originals
    assert joined > 50


def test_no_wrong_title_is_repeated_or_also_a_correct_one() -> None:
    wrong = [comparable(row.title) for row in MADE if row.label == 0]
    assert len(set(wrong)) == len(wrong)
    others = {comparable(title) for title in TITLES}
    assert not [row for row in MADE if row.label == 0 and comparable(row.title) in others - {comparable(row.original)}]


def test_every_kind_occurs_in_its_weight() -> None:
    counts = Counter(row.kind for row in MADE if row.label == 0)
    total = sum(kind.weight for kind in KINDS.values())
    for kind in KINDS.values():
        assert counts[kind.name] == pytest.approx(1500 * kind.weight / total, abs=12), kind.name


def test_correct_titles_look_like_extracted_ones_and_stay_recognisable() -> None:
    right = [row for row in MADE if row.label == 1]
    capitals = sum(row.title.isupper() for row in right) / len(right)
    assert 0.08 < capitals < 0.2, "capitals alone must not be a sign of a wrong title"
    assert 0.4 < sum(row.title == row.original for row in right) / len(right) < 0.8
    near = sum(comparable(row.original) == comparable(row.title) for row in right) / len(right)
    assert near > 0.85
    assert any(row.title.endswith("∗") for row in right)


def test_neither_a_full_stop_nor_brackets_tell_the_source() -> None:
    written = [
        "[A study of  rivers.].",
        "[A study of ponds].",
        "A study of lakes.",
        "A <i>study</i> of\nseas",
        "To be or ...",
    ]
    tidy = ["A study of rivers", "A study of ponds", "A study of lakes", "A study of seas", "To be or ..."]
    assert usable_titles(written) == tidy
    assert usable_titles(tidy) == tidy


def test_unusable_titles_are_left_out() -> None:
    odd = [
        "",
        "  ",
        None,
        "Preface",
        "Single",
        "Table of Contents",
        "Proceedings of the Meeting on Rivers",
        "word " * 60,
    ]
    assert usable_titles([*odd, "Rivers of Norway", "RIVERS of  norway!"]) == ["Rivers of Norway"]


def test_all_the_titles_give_as_many_rows_as_they_can() -> None:
    made = make_titles(TITLES[:500])
    assert 450 <= len(made) <= 500
    assert Counter(row.label for row in made)[0] * 2 == len(made)
    with pytest.raises(DataError, match=rf"{len(made) + 2} rows; 500 usable titles allow {len(made)}, "):
        make_titles(TITLES[:500], len(made) + 2)


@pytest.mark.parametrize(
    ("titles", "arguments", "message"),
    [
        ([], {}, "0 rows; 0 usable titles allow 0"),
        (["One Title Only"] * 50, {}, "0 rows; 1 usable titles allow 0"),
        (TITLES, {"rows": 7}, "7 rows; 4000 usable titles allow .* an even number from 10"),
        (TITLES, {"rows": 0}, "0 rows; 4000 usable"),
        (TITLES, {"weights": {"fragments": 1}}, r"no kind 'fragments'; kinds: .*Did you mean 'fragment'\?"),
        (TITLES, {"weights": {"fragment": -1}}, "fragment=-1; a weight is 0"),
        (TITLES, {"weights": {"fragment": float("nan")}}, "fragment=nan; a weight is 0"),
        (TITLES, {"weights": dict.fromkeys(KINDS, 0.0)}, "every kind has weight 0"),
        (
            [f"Two words{i}" for i in range(200)],
            {"weights": {name: float(name == "truncated_end") for name in KINDS}},
            "no wrong title of kind truncated_end could be made",
        ),
    ],
)
def test_bad_input_is_reported(titles: list[str], arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_titles(titles, **arguments)  # type: ignore[arg-type]


def test_it_needs_no_torch() -> None:
    code = "import sys, fairtune.tasks.titles as t; t.KINDS; print('torch' in sys.modules)"
    assert light_run([sys.executable, "-c", code], text=True).stdout.strip() == "False"


@pytest.mark.skipif(
    not (Path(os.environ.get("FAIRTUNE_MIRROR") or "/nowhere") / "titles").is_dir(),
    reason="FAIRTUNE_MIRROR has no titles",
)
def test_real_titles_make_a_large_set() -> None:
    folder = Path(os.environ["FAIRTUNE_MIRROR"]) / "titles"
    titles = read_titles([folder / "acl_anthology.jsonl.gz", folder / "pubmed.jsonl.gz"])
    assert len(titles) == 151_900
    made = make_titles(titles)
    assert len(made) == 20_000
    counts = Counter(row.kind for row in made if row.label == 0)
    total = sum(kind.weight for kind in KINDS.values())
    for kind in KINDS.values():
        assert counts[kind.name] == pytest.approx(10_000 * kind.weight / total, rel=0.1, abs=5), kind.name
    assert sum(row.title.endswith(".") for row in made if row.label == 1) / 10_000 < 0.05, "PubMed's full stop is a cue"
