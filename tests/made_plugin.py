"""A plug-in of one file, and one that is installed, as tests give them to studies."""

from __future__ import annotations

from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin" / "fairtune_example"
ADDS = '''
from fairtune.methods.config import MethodConfig
from fairtune.methods.base import Method
from fairtune.methods.registry import register

class Config(MethodConfig):
    """A method that does nothing."""

@register
class Nothing(Method):
    name, config_class = "{name}", Config
'''


def install(folder: Path, entry_points: str) -> Path:
    """A folder for PYTHONPATH that holds the example as an installer would leave it."""
    info = folder / "fairtune_example-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairtune-example\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    (folder / EXAMPLE.name).symlink_to(EXAMPLE)
    return folder
