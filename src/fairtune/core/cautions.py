"""Cautions: what a reader of a study must be told before believing it, in three grades.

A *note* is good to know, a *warning* weakens what the study can show, and a *refusal* would make it worthless: such a study does
not run unless it is forced, and then its report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Grade = Literal["note", "warning", "refusal"]
GRADES: tuple[Grade, ...] = ("refusal", "warning", "note")
"""The gravest first."""


@dataclass(frozen=True)
class Caution:
    """One of them: what was seen, why it matters, what to do, and of a refusal, whether it was overruled.

    Args:
        code: by which programs and tests know it, such as `few-seeds`.
    """

    grade: Grade
    code: str
    seen: str
    why: str
    do: str
    forced: bool = False

    def __str__(self) -> str:
        return f"{self.seen}: {self.why}. {self.do}."

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "text": str(self)}


def caution_from_json(found: Mapping[str, Any]) -> Caution:
    """A caution as the ledger has it."""
    return Caution(**{field.name: found[field.name] for field in fields(Caution) if field.name in found})


def gravest_first(found: Iterable[Caution]) -> tuple[Caution, ...]:
    return tuple(sorted(found, key=lambda caution: GRADES.index(caution.grade)))
