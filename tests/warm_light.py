"""What a light verb may import; see tests/warm.py. Nothing heavy may come with it, or tests of that would fail."""

from __future__ import annotations
