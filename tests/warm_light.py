"""What a light verb may import; see tests/warm.py. Nothing heavy may come with it, or tests of that would fail."""

from __future__ import annotations

import typer.rich_utils  # noqa: F401

import fairtune.study.plan  # noqa: F401
from fairtune.cli.app import Verbs
from fairtune.methods.registry import registered

registered()
for verb in Verbs.verbs:
    verb.load(Verbs.package)
