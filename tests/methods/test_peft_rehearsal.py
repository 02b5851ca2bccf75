"""Settings of adapters are tried with the library's own code without importing it; where that says no, the library has the word."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairtune.methods.peft import checks
from fairtune.methods.peft import library_config
from fairtune.methods.peft import library_adapter_types, library_folder
from fairtune.methods.peft import is_taken

peft = pytest.importorskip("peft")
PEFT = library_folder()
assert PEFT is not None
KNOWN = library_adapter_types(PEFT)
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in KNOWN if name != "dora"),
    ("lora", {"r": 4, "lora_alpha": 8, "target_modules": ["query"], "bias": "all"}),
    ("lora", {"layers_pattern": "layer"}),
    ("lora", {"target_modules": "all-linear", "layers_to_transform": 2}),
    ("lora", {"task_type": "SEQ"}),
    ("lora", {"task_type": "SEQ_CLS"}),
    ("lora", {"use_dora": True, "lora_bias": True}),
    ("lora", {"init_lora_weights": "loftq"}),
    ("oft", {"r": 8}),
    ("oft", {"r": 8, "oft_block_size": 0}),
    ("adalora", {"total_step": 100, "tinit": 10, "tfinal": 20}),
    ("adalora", {"total_step": 10, "tinit": 10, "tfinal": 20}),
    ("boft", {"boft_block_size": 0}),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_nothing_is_taken_that_the_library_refuses(name: str, settings: dict[str, Any]) -> None:
    try:
        library_config(name, settings)
        taken = True
    except Exception:
        taken = False
    found = is_taken(PEFT, KNOWN[name].name, KNOWN[name].config, settings)
    assert taken or not found
    assert found == taken or name == "peanut", "what else is told apart is asked of the library, which takes seconds"


def test_it_leaves_the_settings_as_they_are() -> None:
    settings = {"target_modules": ["query"], "rank_pattern": {"query": 4}}
    assert is_taken(PEFT, "lora", "LoraConfig", settings)
    assert settings == {"target_modules": ["query"], "rank_pattern": {"query": 4}}


def test_it_imports_nothing_of_the_library() -> None:
    code = (
        "import sys; from fairtune.methods.peft import checked\n"
        "print(checked('lora', {'r': 4}), checked('dora', {}), checked('vera', {'r': 64}))\n"
        "print([m for m in ('torch', 'transformers', 'peft', 'huggingface_hub') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("change", ["gone", "broken", "moved", "needs more"])
def test_a_library_that_is_made_otherwise_is_asked_itself(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "peft"
    shutil.copytree(PEFT, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    assert is_taken(folder, "lora", "LoraConfig", {"r": 4})
    copy, config = tmp_path / "other" / "peft", "tuners/lora/config.py"
    copy.parent.mkdir()
    folder.rename(copy)
    source = (copy / config).read_text("utf-8")
    if change == "gone":
        (copy / config).unlink()
    elif change == "broken":
        (copy / config).write_text("def (")
    elif change == "moved":
        (copy / config).write_text(source.replace("class LoraConfig(", "class OtherConfig("))
    else:
        (copy / config).write_text(source + "\nassert nn.Module\n")
    assert not is_taken(copy, "lora", "LoraConfig", {"r": 4})


def test_fields_and_refusals_follow_the_installed_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from its files, so that there is nothing that could be of another version."""
    folder = tmp_path / "newer" / "peft"
    shutil.copytree(PEFT, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    config = folder / "tuners/lora/config.py"
    field = "    brand_new: int = field(default=3, metadata={'help': 'A new field.'})\n    r: int = field("
    config.write_text(config.read_text("utf-8").replace("    r: int = field(", field, 1))
    monkeypatch.setattr(checks, "library_folder", lambda: folder)
    monkeypatch.delitem(sys.modules, "peft")
    assert checks.checked("lora", {"brand_new": 4}) == ("lora", {"brand_new": 4})
    assert "peft" not in sys.modules
