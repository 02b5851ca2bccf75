"""Examples per second on a CPU: fairtune's Predictor beside `transformers.pipeline("text-classification", batch_size=32)`.

    python benchmarks/predict.py [--texts 500] [--rounds 5] [--spread 0.25 0.8]

The same model (MiniLM with a classification head), the same made texts, the same truncation; the sides take turns, and must give
the same labels and probabilities (within 1e-5). `pipeline, sorted` is the pipeline on texts that were sorted by their length in
characters and put back in order, which its user would have to do. `--spread` is the standard deviation of the logarithm of a
text's number of words: 0.25 are sentences of one kind, 0.8 are mixed lengths as in reviews or comments. Loading is not timed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import TextClassificationPipeline

from fairtune.classifier.predictor import Predictor
from fairtune.models.loader import load_classifier
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer

MAX_LENGTH, BATCH_SIZE, MEDIAN_WORDS, MOST_WORDS = 256, 32, 25, 400
LABELS = ("bad", "fair", "good")
Probabilities = npt.NDArray[np.float64]
Side = Callable[[list[str]], Probabilities]


def made_texts(count: int, spread: float, tokenizer: Any) -> list[str]:
    """Random words of the vocabulary, their number log-normal; no text is there twice."""
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha() and len(word) > 2)
    draw = random.Random(0)
    sizes = [min(MOST_WORDS, max(1, round(draw.lognormvariate(math.log(MEDIAN_WORDS), spread)))) for _ in range(count)]
    return [f"{number} {' '.join(draw.choices(words, k=size))}" for number, size in enumerate(sizes)]


def sides(model: Any, tokenizer: Any, batch_tokens: int | None) -> dict[str, Side]:
    predictor = Predictor(model, tokenizer, MAX_LENGTH, batch_tokens=batch_tokens)
    pipeline: Any = TextClassificationPipeline(model=model, tokenizer=tokenizer, device=-1)

    def fairtune(texts: list[str]) -> Probabilities:
        logits = torch.from_numpy(predictor.logits([(text,) for text in texts]))
        return logits.double().softmax(-1).numpy()

    def plain(texts: list[str]) -> Probabilities:
        found = pipeline(texts, batch_size=BATCH_SIZE, top_k=None, truncation=True, max_length=MAX_LENGTH)
        return np.array([[{one["label"]: one["score"] for one in row}[label] for label in LABELS] for row in found])

    def in_order(texts: list[str]) -> Probabilities:
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        found = np.empty((len(texts), len(LABELS)))
        found[order] = plain([texts[place] for place in order])
        return found

    return {"fairtune": fairtune, "pipeline": plain, "pipeline, sorted": in_order}


def compare(compared: dict[str, Side], texts: list[str], rounds: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in compared}
    wanted, furthest = None, 0.0
    for number in range(rounds):
        names = list(compared) if number % 2 == 0 else list(reversed(compared))
        for name in names:
            started = time.perf_counter()
            found = compared[name](texts)
            seconds[name].append(time.perf_counter() - started)
            wanted = found if wanted is None else wanted
            furthest = max(furthest, float(np.abs(found - wanted).max()))
            if furthest > 1e-5 or (found.argmax(-1) != wanted.argmax(-1)).any():
                raise SystemExit(f"{name} gives other answers: {furthest:.1e} apart")
    print(f"{'':18} {'examples/s':>11}   ratio of each round to it (median, least to most)")
    for name, times in seconds.items():
        ratios = [theirs / ours for theirs, ours in zip(times, seconds["fairtune"], strict=True)]
        spread = f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"
        remark = "" if name == "fairtune" else f"fairtune is {spread} as fast"
        print(f"{name:18} {len(texts) / statistics.median(times):11.0f}   {remark}")
    print(f"same labels; probabilities at most {furthest:.1e} apart")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=500)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--spread", type=float, nargs="+", default=[0.25, 0.8])
    options.add_argument("--batch-tokens", type=int, help="padded tokens in a batch of fairtune's")
    given = options.parse_args()
    source = find_model("minilm")
    tokenizer = load_tokenizer(source.fetch())
    torch.manual_seed(0)
    model = load_classifier(source, LABELS).network.eval()
    compared = sides(model, tokenizer, given.batch_tokens)
    print(
        f"MiniLM, {given.texts:,} texts, at most {MAX_LENGTH} tokens, {given.rounds} rounds, {torch.get_num_threads()} threads"
    )
    for spread in given.spread:
        texts = made_texts(given.texts, spread, tokenizer)
        lengths = [len(ids) for ids in tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]]
        low, middle, high = np.percentile(lengths, [5, 50, 95])
        print(f"\nspread {spread:g}: {low:.0f}, {middle:.0f}, {high:.0f} tokens (5 %, median, 95 %)")
        for side in compared.values():
            side(texts[:BATCH_SIZE])
        compare(compared, texts, given.rounds)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
