"""Small changes to the words of a text. Words are what white space parts; the spacing of those that stay is kept."""

from __future__ import annotations

import random
import re

LEAST_LETTERS = 3
"""Shorter words get no typo: too little would be left of them."""


def changed(text: str, draws: random.Random, delete: float, swap: float, typo: float) -> str:
    """A text with words left out, then neighbours exchanged, then words misspelt, each with its chance."""
    pieces = re.split(r"(\s+)", text)  # words at even places, what parts them at odd ones
    gaps, words = ["", *pieces[1::2]], pieces[::2]
    if not words[0]:  # white space before the first word
        gaps, words = gaps[1:], words[1:]
    end = ""
    if words and not words[-1]:
        end, gaps, words = gaps[-1], gaps[:-1], words[:-1]
    if not words:
        return text
    first = gaps[0]
    if delete:
        stays = [draws.random() >= delete for _ in words]
        if not any(stays):
            stays[draws.randrange(len(words))] = True
        gaps = [gap for gap, stay in zip(gaps, stays, strict=True) if stay]
        words = [word for word, stay in zip(words, stays, strict=True) if stay]
        gaps[0] = first
    if swap:
        place = 0
        while place < len(words) - 1:
            if draws.random() < swap:
                words[place], words[place + 1] = words[place + 1], words[place]
                place += 1  # a word moves once
            place += 1
    if typo:
        words = [misspelt(word, draws) if draws.random() < typo else word for word in words]
    return "".join(gap + word for gap, word in zip(gaps, words, strict=True)) + end


def misspelt(word: str, draws: random.Random) -> str:
    """A word with one slip: two neighbouring letters exchanged, a letter lost, or a letter twice."""
    if len(word) < LEAST_LETTERS:
        return word
    kind, place = draws.randrange(3), draws.randrange(len(word) - 1)
    here, after = word[place], word[place + 1]
    if kind == 0 and here != after:
        return word[:place] + after + here + word[place + 2 :]
    if kind == 1:
        return word[:place] + word[place + 1 :]
    return word[: place + 1] + word[place:]
