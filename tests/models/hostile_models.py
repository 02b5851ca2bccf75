"""Model folders whose Python would leave a mark, if anything ran it."""

from __future__ import annotations

import json
from pathlib import Path

CLASSES = ("AutoConfig", "AutoTokenizer", "AutoModel", "AutoModelForSequenceClassification", "AutoModelForCausalLM")


def make_hostile(folder: Path, file: str = "config.json") -> Path:
    """Let a file of settings in a model's folder name Python code. Returns the file that the code would make."""
    mark = folder / "ran"
    (folder / "evil.py").write_text(
        "import pathlib\n"
        f"pathlib.Path({str(mark)!r}).touch()\n"
        "from transformers import PreTrainedConfig as EvilAutoConfig\n"
        + "".join(f"class Evil{name}: pass\n" for name in CLASSES[1:])
    )
    content = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    classes = {name: f"evil.Evil{name}" for name in CLASSES}
    content["auto_map"] = {**classes, "AutoTokenizer": ["evil.EvilAutoTokenizer", None]}
    if file == "config.json":
        content["model_type"] = "evil"
    (folder / file).write_text(json.dumps(content))
    return mark
