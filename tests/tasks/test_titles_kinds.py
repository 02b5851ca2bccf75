"""What each kind of corruption promises, and that the grammar is complete."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtune.tasks.titles import KINDS
from fairtune.tasks.titles.corruption import PARTS, SLOT, corrupt, vary_surface
from fairtune.tasks.titles.grammar import RULES, words_of

TITLE = "Robust Estimation of Turbulence in Frozen Rivers: Experience with Non-Linear Systems (Part Two)"
OTHER = "A Different Title about Galaxies"
ODD = ["Two words", "Ænigma – ωμέγα", "中文 标题", "x y", "((( :: ---", "a-b: c", "A" * 300 + " B"]


def corrupted(name: str, times: int = 200, title: str = TITLE) -> list[str]:
    draws = random.Random(name)
    return [text for _ in range(times) if (text := corrupt(name, title, OTHER, draws)) is not None]


def has_section(text: str) -> bool:
    return any(section.lower() in text.lower() for section in words_of("section"))


PROMISES: dict[str, Callable[[str], bool]] = {
    "truncated_end": lambda text: TITLE.startswith(text) and len(text) < len(TITLE),
    "truncated_start": lambda text: TITLE.endswith(text) and len(text) < len(TITLE),
    "ellipsis": lambda text: text.endswith((".", "…")) and TITLE.startswith(text.rstrip(" .…")),
    "fragment": lambda text: len(text.split()) <= 5,
    "running_header": lambda text: len(text.split()) < 14,
    "author_line": lambda text: TITLE not in text,
    "section_word": has_section,
    "contents_line": lambda text: has_section(text) or "..." in text.replace(" ", ""),
    **dict.fromkeys(["header_then_title", "title_and_authors", "title_then_note"], lambda text: TITLE in text),
    "section_then_title": lambda text: TITLE in text,
    "two_titles": lambda text: "A Different" in text,
    "ocr_noise": lambda text: abs(len(text) - len(TITLE)) > 0 or sum(a != b for a, b in zip(text, TITLE, strict=True)) > 1,
    "lost_spacing": lambda text: text.replace(" ", "") == TITLE.replace(" ", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_changes_the_title_in_many_ways_and_keeps_its_promise(name: str) -> None:
    texts = corrupted(name, 400)
    assert len(texts) > 300
    assert TITLE not in texts
    assert len(set(texts)) >= (8 if name.startswith(("truncated", "two")) else 25)
    assert all(text.strip() and "\n" not in text for text in texts)
    assert not [text for text in texts if name != "garbled" and re.search(r"[{}<>|]|\d\.\.\d", text)], "an open slot"
    assert not [text for text in texts if name in PROMISES and not PROMISES[name](text)]


@pytest.mark.parametrize("title", ODD)
def test_odd_titles_are_corrupted_or_declined_and_can_be_varied(title: str) -> None:
    assert all(text.strip() for name in KINDS for text in corrupted(name, 20, title))
    draws = random.Random(0)
    assert all(vary_surface(title, draws).strip() for _ in range(100))


def test_every_slot_has_something_to_fill_it_and_every_rule_is_used() -> None:
    used = {
        (slot[3] or "title").removeprefix("other_")
        for forms in RULES.values()
        for _, form in forms
        for slot in SLOT.finditer(form)
    }
    assert used <= {*RULES, *PARTS}
    in_code = {"unreadable_letter", "misreading", "note_mark", "function_word"}
    assert set(RULES) - set(KINDS) - in_code <= used
    assert all(forms and all(weight > 0 for weight, _ in forms) for forms in RULES.values())
    assert not [form for forms in RULES.values() for _, form in forms if form.count("<") != form.count(">")]


def test_the_page_has_every_kind_with_its_weight() -> None:
    page = (Path(__file__).parents[2] / "docs" / "titles.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if re.match(r"\| `\w+` \| [\d.]+ \|", line)]
    assert listed == [f"| `{kind.name}` | {kind.weight:g} | {kind.help} |" for kind in KINDS.values()]
