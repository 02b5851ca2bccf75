"""Model folders whose Python would leave a mark, if anything ran it."""

from __future__ import annotations

import json
from pathlib import Path

CLASSES = ("AutoConfig", "AutoTokenizer", "AutoModel", "AutoModelForSequenceClassification", "AutoModelForCausalLM")


def make_hostile(folder: Path, file: str = "config.json", known: bool = False) -> Path:
    """Let a model's folder name Python code of its own. Returns the file that the code would make.

    Args:
        file: of settings, that names the code.
        known: whether transformers has an architecture of that name, as hostile folders may say too.
    """
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
    if file == "config.json" and not known:
        content["model_type"] = "evil"
    (folder / file).write_text(json.dumps(content))
    return mark
