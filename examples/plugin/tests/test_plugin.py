"""The promises that fairtune's own methods and tasks keep, kept by this package too. Needs `pip install -e .` or PYTHONPATH."""

from __future__ import annotations

from pathlib import Path

from fairtune.testing import check_method, check_task, make_toy


def test_lookahead(tmp_path: Path) -> None:
    toy = make_toy(tmp_path, plugins=["fairtune_example.lookahead"])
    check_method(toy, "lookahead", idle={"keep": 1})


def test_weather(tmp_path: Path) -> None:
    check_task(make_toy(tmp_path, plugins=["fairtune_example.weather"], task="weather"))
