"""Whether two trees of the source train the same bits and say the same: small studies of every method and kind of task.

    python tools/golden.py record OUT                      # with the source that is installed, or that PYTHONPATH names
    python tools/golden.py compare BEFORE BEFORE_AGAIN AFTER

Recorded are the hashes of plans, the sha256 of the final weights and of the predictions, and every leaf of each report's JSON.
Two recordings of the same source tell which leaves (times, machines, paths) are no promise; all others must be the same
afterwards. Only the command line is used, so any version of the source can be recorded.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

MINILM = {
    "task": "movie-reviews",
    "model": "minilm",
    "seeds": 2,
    "train": {"examples": 48, "eval_examples": 40, "steps": 4, "batch_size": 8, "max_length": 32, "lr": 5e-4},
}
TINY = {
    "task": {"train": "rows.csv", "kinds": "sort", "metric": "macro_f1"},
    "model": "tiny-bert",
    "seeds": 2,
    "train": {"epochs": 2, "batch_size": 16, "max_length": 32, "lr": 1e-3},
}
TEXT = {
    "task": {"kind": "language_model", "train": "text.txt", "holdout": {"validation": 0.2, "test": 0.2}},
    "model": {"preset": "gpt-mini", "context": 32},
    "tokenizer": {"train": 300},
    "seeds": 2,
    "train": {"steps": 4, "batch_size": 4, "lr": 1e-3},
}
STUDIES: dict[str, dict[str, Any]] = {
    "oelm": {
        **MINILM,
        "arms": {
            "baseline": {"lr": 1e-4},
            "baseline-fast": {},
            "freeze-pretrained": {},
            "oelm-freeze": {},
            "oelm-random": {"lr": 2e-4},
            "oelm-global-trainable": {},
        },
        "compare": {"margin": "1.5%"},
    },
    "bpsom": {
        **MINILM,
        "arms": {
            "baseline": {},
            "bpsom": {"methods": [{"bpsom": {"grid": 6}}]},
            "bpsom-observer": {"methods": [{"bpsom": {"grid": 6, "alpha": 0, "prune": None}}]},
            "bpsom-no-prune": {"methods": [{"bpsom": {"grid": 6, "prune": None}}]},
        },
    },
    "named": {
        **MINILM,
        "seeds": 1,
        "train": {**MINILM["train"], "examples": 480},
        "arms": ["baseline", "bpsom", "oelm-scale-matched", "baseline-trainable"],
    },
    "adversarial": {
        **MINILM,
        "arms": {"baseline": {}, **{m: {"methods": [m]} for m in ("fgm", "pgd", "freelb")}},
    },
    "losses": {
        **MINILM,
        "arms": {
            "baseline": {},
            "focal": {"methods": [{"focal": {"alpha": "balanced"}}]},
            **{m: {"methods": [m]} for m in ("label_smoothing", "weighted_ce", "rdrop")},
        },
    },
    "adapters": {
        **MINILM,
        "arms": {
            "baseline": {},
            "lora": {"methods": ["peft"]},
            "ia3": {"methods": [{"peft": {"type": "ia3"}}]},
            "bitfit": {"methods": ["bitfit"]},
        },
    },
    "habits": {
        **MINILM,
        "arms": {
            "baseline": {},
            "ema": {"methods": [{"ema": {"decay": 0.9}}]},
            "layers": {"methods": [{"layerwise_lr": {"decay": 0.8}}]},
            "augment": {"methods": ["augment"]},
        },
    },
    "composed": {
        **MINILM,
        "arms": {
            "baseline": {},
            "fgm-ema": {"methods": ["fgm", {"ema": {"decay": 0.9}}]},
            "freelb-focal": {"methods": ["freelb", "focal"]},
            "rdrop-layers": {"methods": ["rdrop", "layerwise_lr"]},
            "lora-focal": {"methods": ["peft", "focal"]},
            "oelm-pgd": {"methods": [{"orthogonal_qk": {"init": "headwise"}}, "pgd"]},
        },
    },
    "gpt-classifier": {
        **MINILM,
        "model": "gpt-mini",
        "tokenizer": {"train": 400},
        "arms": {
            "baseline": {},
            "both-ways": {"attention": "bidirectional", "methods": []},
            "oelm-freeze": {},
            "fgm": {"methods": ["fgm"]},
        },
    },
    "reviews-text": {
        **TEXT,
        "task": "movie-reviews/text",
        "train": {"steps": 4, "batch_size": 4, "lr": 1e-3, "tokens": "20k"},
        "arms": {"baseline": {}, "oelm-freeze": {}},
        "prompts": ["The film"],
    },
    "files-text": {
        **TEXT,
        "arms": {
            "baseline": {},
            "oelm-random": {},
            "ema": {"methods": [{"ema": {"decay": 0.9}}]},
            "layers": {"methods": ["layerwise_lr"]},
        },
        "compare": {"margin": "5%", "target_loss": 6.0},
    },
    "files": {
        **TINY,
        "dedupe": True,
        "order": "random",
        "arms": {"baseline": {}, "focal": {"methods": ["focal"]}, "slow": {"lr": 1e-5, "methods": []}},
    },
    "pairs": {
        **TINY,
        "task": {"train": "pairs.jsonl", "text": ["one", "two"], "label": "same", "metric": "mcc"},
        "train": {
            "epochs": 2,
            "batch_size": 8,
            "accumulate": 2,
            "max_length": "auto",
            "lr": 1e-3,
            "evaluate": 5,
            "patience": 2,
            "schedule": "cosine",
            "warmup": 3,
        },
        "order": "sequential",
        "arms": {"baseline": {}, "fgm": {"methods": ["fgm"]}, "smooth": {"methods": ["label_smoothing"]}},
    },
    "two-models": {
        **TINY,
        "arms": {"baseline": {}, "other": {"model": "other-bert", "methods": []}, "oelm-freeze": {}},
    },
}


def make_inputs(folder: Path) -> None:
    """The files that the studies name: rows, pairs, text and two tiny models."""
    draw = random.Random(11)
    good, bad, plain = ["good", "great", "fine"], ["bad", "dull", "poor"], [f"w{i}" for i in range(30)]

    def sentence(label: int) -> str:
        words = [*draw.choices(plain, k=draw.randint(3, 12)), draw.choice((bad, good)[label])]
        draw.shuffle(words)
        return " ".join(words)

    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label", "sort"])
        rows = [(sentence(i % 2), ("neg", "pos")[i % 2], ("", "short", "long")[i % 3]) for i in range(300)]
        writer.writerows([*rows, *rows[:5]])
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as handle:
        for i in range(240):
            one, two = sentence(i % 2), sentence((i // 2) % 2)
            handle.write(json.dumps({"one": one, "two": two, "same": ("no", "yes")[i % 2 == (i // 2) % 2]}) + "\n")
    paragraphs = [". ".join(sentence(i % 2) for _ in range(6)) for i in range(120)]
    (folder / "text.txt").write_text("\n\n".join(paragraphs), encoding="utf-8")
    for seed, name in enumerate(("tiny-bert", "other-bert")):
        make_model(folder / name, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *good, *bad, *plain], seed)


def make_model(folder: Path, words: list[str], seed: int) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=names, **special).save_pretrained(folder)
    torch.manual_seed(seed)
    BertModel(
        BertConfig(
            vocab_size=len(words),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=128,
        )
    ).save_pretrained(folder)


def fairtune(*words: str, at: Path) -> str:
    """What the command line answers; a failure ends the recording."""
    done = subprocess.run([sys.executable, "-m", "fairtune", *words], cwd=at, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"fairtune {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def record_study(name: str, at: Path) -> dict[str, Any]:
    plan = json.loads(fairtune("plan", f"{name}.yaml", "--json", at=at))
    fairtune("run", f"{name}.yaml", at=at)
    fairtune("report", name, at=at)
    runs = at / "runs" / name
    kept = sorted([*runs.rglob("*.safetensors"), *runs.rglob("predictions.parquet")])
    return {
        "plan": plan["plan"],
        "keys": {f"{run['arm']}/{run['seed']}": run["key"] for run in plan["runs"]},
        "files": {str(file.relative_to(runs)): sha256(file) for file in kept if "checkpoint" not in file.parts},
        "report": json.loads((runs / "report" / "report.json").read_text(encoding="utf-8")),
    }


def record_classifier(at: Path) -> dict[str, Any]:
    """`train` and `predict`, which take the same road without a study."""
    options = ["--model", "tiny-bert", "--out", "trained", "--epochs", "2"]
    fairtune("train", "rows.csv", *options, at=at)
    fairtune("predict", "trained", "rows.csv", "--out", "predicted.csv", "--probabilities", at=at)
    return {"weights": sha256(at / "trained" / "model.safetensors"), "predicted": sha256(at / "predicted.csv")}


def record(out: Path) -> None:
    """Record everything; what an interrupted recording has is kept."""
    out.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        FAIRTUNE_CACHE=str(out / "cache"), HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false"
    )
    kept = out / "golden.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if not found:
        make_inputs(out)
        found = {"schema": json.loads(fairtune("schema", at=out)), "classifier": record_classifier(out)}
    for name, study in STUDIES.items():
        if name not in found:
            # JSON is YAML
            (out / f"{name}.yaml").write_text(json.dumps({"study": name, **study}), encoding="utf-8")
            found[name] = record_study(name, out)
            print(f"{name}: plan {found[name]['plan']}, {len(found[name]['files'])} files", flush=True)
            kept.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {p: leaf for k, v in value.items() for p, leaf in leaves(v, f"{path}/{k}").items()}
    if isinstance(value, list):
        return {p: leaf for k, v in enumerate(value) for p, leaf in leaves(v, f"{path}/{k}").items()}
    return {path: value}


def compare(before: Path, again: Path, after: Path) -> int:
    """Print what is not the same afterwards, among what the same source says twice; the number of such leaves."""
    one, two, new = (
        leaves(json.loads((f / "golden.json").read_text(encoding="utf-8"))) for f in (before, again, after)
    )
    promised = {path: leaf for path, leaf in one.items() if two.get(path, ...) == leaf}
    changed = [path for path, leaf in promised.items() if new.get(path, ...) != leaf]
    for path in changed:
        print(f"{path}: {promised[path]!r} -> {new.get(path, 'gone')!r}"[:400])
    added = new.keys() - one.keys() - two.keys()
    print(f"{len(promised):,} leaves are promised; {len(changed)} changed, {len(added)} are new")
    for path in sorted(added)[:40]:
        print(f"  new: {path}")
    return len(changed)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", out]:
            record(Path(out).absolute())
        case ["compare", before, again, after]:
            raise SystemExit(1 if compare(Path(before), Path(again), Path(after)) else 0)
        case _:
            raise SystemExit(__doc__)
