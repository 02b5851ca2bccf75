"""Cells that a spreadsheet would take for formulas, and how they are kept from it."""

from __future__ import annotations

import re
from typing import Any

QUOTE = "'"
FORMULA = re.compile(r"'*(?:[\t\r\n\0]|[\s\ufeff]*[=+\-@＝＋－＠])")
"""How such a cell begins. Quotes before it count, so that taking one away again gives the data back, whatever they were."""


def guarded(cell: Any) -> Any:
    """The cell with a quote before it, which makes spreadsheets take it for text; numbers, and other texts, as they are."""
    return QUOTE + cell if isinstance(cell, str) and FORMULA.match(cell) else cell
