"""What each kind of corruption promises, and that the patterns are complete."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtune.tasks.titles import kinds
from fairtune.tasks.titles.corruption import Draws, kind
from fairtune.tasks.titles.noise import vary_surface
from fairtune.tasks.titles.phrases import (
    MADE,
    RULES,
    SLOT,
    WORDS,
    expand_phrase,
)
from fairtune.tasks.titles.vocabulary import SECTIONS

TITLE = "Robust Estimation of Turbulence in Frozen Rivers: Experience with Non-Linear Systems (Part Two)"
OTHER = "A Different Title about Galaxies"
FEWEST = {
    "before_colon": 5,
    "truncated_start": 8,
    "truncated_end": 8,
    "repeated_title": 10,
    "two_titles": 15,
    "hyphenated": 20,
}
"""Different results that a kind has, where those are few for one title."""
OF_THE_TITLE = {"title", "start", "end", "tail"}


def corrupted(name: str, times: int = 200, title: str = TITLE) -> list[str]:
    draws = Draws(name, lambda: OTHER)
    return [text for _ in range(times) if (text := kinds()[name].corrupt(title, draws)) is not None]


@pytest.mark.parametrize("name", kinds())
def test_every_kind_changes_the_title_in_many_ways(name: str) -> None:
    texts = corrupted(name)
    assert len(texts) > 150
    assert TITLE not in texts
    assert all(text.strip() and "\n" not in text for text in texts)
    assert len(set(texts)) >= FEWEST.get(name, 25)


@pytest.mark.parametrize("name", [name for name in kinds() if name != "garbled"])
def test_no_slot_is_left_open(name: str) -> None:
    assert not [text for text in corrupted(name, 600) if re.search(r"[{}<|]|\d\.\.\d", text)]


PROMISES: dict[str, Callable[[str], bool]] = {
    "truncated_end": lambda text: TITLE.startswith(text) and len(text) < len(TITLE),
    "truncated_start": lambda text: TITLE.endswith(text) and len(text) < len(TITLE),
    "ellipsis": lambda text: text.endswith((".", "…")) and TITLE.startswith(text.rstrip(" .…")),
    "before_colon": lambda text: text.endswith(":") or text.count("(") > text.count(")"),
    "hyphenated": lambda text: text.endswith("-") or text.count("- ") == 2,
    "fragment": lambda text: len(text.split()) <= 5,
    "contents_line": lambda text: any(section.lower() in text.lower() for section in SECTIONS) or "..." in text.replace(" ", ""),
    "section_word": lambda text: any(section.lower() in text.lower() for section in SECTIONS),
    "header_then_title": lambda text: TITLE in text,
    "section_then_title": lambda text: TITLE in text,
    "title_and_authors": lambda text: TITLE in text,
    "title_and_affiliation": lambda text: TITLE in text,
    "title_then_note": lambda text: TITLE in text,
    "two_titles": lambda text: "A Different" in text,
    "repeated_title": lambda text: TITLE.lower() in text.lower() and text.lower().count("robust estimation") == 2,
    "lost_spacing": lambda text: text.replace(" ", "").lower() == TITLE.replace(" ", "").lower(),
    "wrong_case": lambda text: text.lower() == TITLE.lower() and not text.isupper(),
    "ocr_noise": lambda text: abs(len(text) - len(TITLE)) > 0 or sum(a != b for a, b in zip(text, TITLE, strict=True)) > 1,
    "running_header": lambda text: len(text.split()) < 14,
    "author_line": lambda text: TITLE not in text,
}  # fmt: skip


@pytest.mark.parametrize("name", PROMISES)
def test_a_kind_keeps_its_promise(name: str) -> None:
    broken = [text for text in corrupted(name) if not PROMISES[name](text)]
    assert not broken, broken[:3]


@pytest.mark.parametrize("name", kinds())
@pytest.mark.parametrize("title", ["Two words", "Ænigma – ωμέγα", "中文 标题", "x y", "((( :: ---", "A" * 300 + " B"])
def test_odd_titles_are_corrupted_or_declined(name: str, title: str) -> None:
    for text in corrupted(name, 20, title):
        assert text.strip()


@pytest.mark.parametrize("title", ["Two words", "Ænigma – ωμέγα", "中文 标题", "x y", "((( :: ---", "a-b: c"])
def test_odd_titles_can_be_dressed(title: str) -> None:
    draws = Draws(0, lambda: OTHER)
    assert all(vary_surface(title, draws).strip() for _ in range(100))


def test_every_slot_of_every_pattern_has_something_to_fill_it() -> None:
    known = {*RULES, *WORDS, *MADE, *OF_THE_TITLE}
    for name, forms in RULES.items():
        assert forms, name
        for weight, pattern in forms:
            assert weight > 0
            assert pattern.count("{") == pattern.count("}"), pattern
            used = {
                slot["rule"] for part in re.split(r"[<|>]", pattern) for slot in SLOT.finditer(part) if slot["rule"]
            }
            assert used <= known, f"{name}: {used - known}"


def test_every_rule_is_used_or_a_kind() -> None:
    text = " ".join(pattern for forms in RULES.values() for _, pattern in forms)
    unused = [name for name in RULES if f"{{{name}" not in text and name not in kinds()]
    assert not unused


def test_rules_say_many_things() -> None:
    draws = Draws(5, lambda: OTHER)
    for rule in ("person", "institution", "journal", "conference"):
        assert len({expand_phrase(rule, draws) for _ in range(1000)}) > 700, rule


def test_a_kind_must_be_new_and_documented() -> None:
    def undocumented(title: str, draws: Draws) -> str | None:
        return title + str(draws)

    def fragment(title: str, draws: Draws) -> str | None:
        """There is one already."""
        return title + str(draws)

    with pytest.raises(ValueError, match="needs a docstring"):
        kind(1)(undocumented)
    with pytest.raises(ValueError, match="registered twice"):
        kind(1)(fragment)


def test_the_page_has_every_kind_with_its_weight() -> None:
    page = (Path(__file__).parents[2] / "docs" / "titles.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if re.match(r"\| `\w+` \| [\d.]+ \|", line)]
    assert listed == [f"| `{kind.name}` | {kind.weight:g} | {kind.help} |" for kind in kinds().values()]
