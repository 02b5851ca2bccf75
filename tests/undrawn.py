"""Reports whose figures are made and left empty, for tests of what they say in words: drawing takes longer than all the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNDRAWN = "FAIRTUNE_TEST_UNDRAWN"
"""The variable that asks a warm process for that; see tests/warm.py."""


def draw_nothing(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Draw nothing from now on.

    Args:
        change: such as `monkeypatch.setattr`, where the process has other things to do afterwards.
    """
    from matplotlib.figure import Figure

    from fairtune.report.sections.representation import figure as representation

    def save(_: Figure, file: Any, *__: Any, **___: Any) -> None:
        file.write('<svg width="1" height="1"></svg>')

    change(Figure, "savefig", save)
    change(representation, "on_a_plane", lambda states: states[:, :2].astype(float))
