"""Texts are hashed many at a time, with the bits of each alone; rows are held out and found again by them."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pyarrow as pa
import xxhash

from fairtune.tasks.text_hashes import PAIR_SEPARATOR, exact_and_normal, normal_form, place_hashes, unit_hashes


def test_hashes_of_many_texts_are_those_of_each() -> None:
    draw = random.Random(0)
    pools = (" ab1 2,.Z_'\t\n\x1c\0", "äß ÉΣςσ1٣٤ ½²１２-\u2028\u00a0İﬁ字。😀", "0123456789 .,-:", "!? .")
    texts = ["".join(draw.choices(draw.choice(pools), k=draw.randrange(20))) for _ in range(3000)]
    texts += ["9 9 " * 20_000, "é " + "9 9 " * 20_000]
    for columns in ([texts], [texts, texts[::-1]]):
        exact, normal = exact_and_normal([pa.array(column, pa.large_string()) for column in columns])
        for found, form in ((exact, str), (normal, normal_form)):
            examples = [PAIR_SEPARATOR.join(map(form, example)) for example in zip(*columns, strict=True)]
            assert found.tolist() == [xxhash.xxh3_64_intdigest(example.encode()) for example in examples]
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
    assert unit_hashes(texts).tolist() == [int.from_bytes(digest[:8], "big") / 2**64 for digest in digests]
    assert len(exact_and_normal([pa.array([], pa.large_string())])[0]) == 0
    assert np.all(unit_hashes(texts) < 1)


def test_case_and_outer_spaces_do_not_decide_what_is_held_out() -> None:
    first = ["  Ein Größtes\u00a0", "b", None, *("\x1c\v B" + chr(code) for code in range(300))]
    alike = ["ein größtes", "b", "", *(f"b{chr(code)}".lower().rstrip() for code in range(300))]
    column = pa.array(first)
    assert place_hashes([column]).tolist() == unit_hashes(alike).tolist()
    assert place_hashes([column, column]).tolist() == unit_hashes(f"{one}\2{one}" for one in alike).tolist()
