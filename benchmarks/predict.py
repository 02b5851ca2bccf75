"""Examples per second on a CPU: fairtune's Predictor beside `transformers.pipeline("text-classification", batch_size=32)`.

    python benchmarks/predict.py [--texts 500] [--rounds 5] [--spread 0.25 0.8]

The same model (MiniLM with a classification head), the same made texts, the same truncation; each side has a process of its own,
so that neither gains by what the other changes. The sides take turns, and must give the same labels and probabilities (within
1e-5). Beside the time of the clock stands that of the processor, which other programs on the machine disturb less.

`pipeline, sorted` is the pipeline on texts that were sorted by their length in characters and put back in order, which its user
would have to do. `--spread` is the standard deviation of the logarithm of a text's number of words: 0.25 are sentences of one
kind, 0.8 are mixed lengths as in reviews or comments. Loading is not timed.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import statistics
import sys
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


def load() -> tuple[Any, Any]:
    """The model and its tokenizer."""
    source = find_model("minilm")
    torch.manual_seed(0)
    return load_classifier(source, LABELS).network.eval(), load_tokenizer(source.fetch())


def fairtune_side(batch_tokens: int | None) -> Side:
    predictor = Predictor(*load(), MAX_LENGTH, batch_tokens=batch_tokens)

    def fairtune(texts: list[str]) -> Probabilities:
        logits = torch.from_numpy(predictor.logits([(text,) for text in texts]))
        return logits.double().softmax(-1).numpy()

    return fairtune


def pipeline_side(in_order: bool) -> Side:
    model, tokenizer = load()
    pipeline: Any = TextClassificationPipeline(model=model, tokenizer=tokenizer, device=-1)

    def plain(texts: list[str]) -> Probabilities:
        found = pipeline(texts, batch_size=BATCH_SIZE, top_k=None, truncation=True, max_length=MAX_LENGTH)
        return np.array([[{one["label"]: one["score"] for one in row}[label] for label in LABELS] for row in found])

    def sorted_before(texts: list[str]) -> Probabilities:
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        found = np.empty((len(texts), len(LABELS)))
        found[order] = plain([texts[place] for place in order])
        return found

    return sorted_before if in_order else plain


SIDES: dict[str, Callable[[int | None], Side]] = {
    "fairtune": fairtune_side,
    "pipeline": lambda _: pipeline_side(in_order=False),
    "pipeline, sorted": lambda _: pipeline_side(in_order=True),
}


def serve(name: str, batch_tokens: int | None, pipe: Any) -> None:
    """One side: answer texts with probabilities and the seconds that it took, of the clock and of the processor."""
    compute = SIDES[name](batch_tokens)
    while texts := pipe.recv():
        clock, processor = time.perf_counter(), time.process_time()
        found = compute(texts)
        pipe.send((found, time.perf_counter() - clock, time.process_time() - processor))


def compare(pipes: dict[str, Any], texts: list[str], rounds: int) -> None:
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in pipes}
    wanted, furthest = None, 0.0
    for number in range(rounds + 1):  # the first one, of few texts, warms up
        names = list(pipes) if number % 2 == 0 else list(reversed(pipes))
        for name in names:
            pipes[name].send(texts if number else texts[:BATCH_SIZE])
            found, *spent = pipes[name].recv()
            if number == 0:
                continue
            seconds[name].append((spent[0], spent[1]))
            print(f"  round {number}: {name}: {spent[0]:.2f} s, {spent[1]:.2f} s of the processor", file=sys.stderr)
            wanted = found if wanted is None else wanted
            furthest = max(furthest, float(np.abs(found - wanted).max()))
            if furthest > 1e-5 or (found.argmax(-1) != wanted.argmax(-1)).any():
                raise SystemExit(f"{name} gives other answers: {furthest:.1e} apart")
    print(f"{'':18} {'examples/s':>11}   fairtune is faster by, in each round (median, least to most)")
    for name, times in seconds.items():
        remark = (
            "" if name == "fairtune" else f"{ratio(times, seconds, 0)}; of processor time {ratio(times, seconds, 1)}"
        )
        print(f"{name:18} {len(texts) / statistics.median(clock for clock, _ in times):11.0f}   {remark}")
    print(f"same labels; probabilities at most {furthest:.1e} apart")


def ratio(times: list[tuple[float, float]], seconds: dict[str, list[tuple[float, float]]], which: int) -> str:
    ratios = [theirs[which] / ours[which] for theirs, ours in zip(times, seconds["fairtune"], strict=True)]
    return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=500)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--spread", type=float, nargs="+", default=[0.25, 0.8])
    options.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    options.add_argument("--batch-tokens", type=int, help="padded tokens in a batch of fairtune's")
    given = options.parse_args()
    tokenizer = load_tokenizer(find_model("minilm").fetch())
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for name in dict.fromkeys(("fairtune", *given.sides)):
        pipes[name], end = context.Pipe()
        context.Process(target=serve, args=(name, given.batch_tokens, end), daemon=True).start()
    print(
        f"MiniLM, {given.texts:,} texts, at most {MAX_LENGTH} tokens, {given.rounds} rounds, {torch.get_num_threads()} threads"
    )
    for spread in given.spread:
        texts = made_texts(given.texts, spread, tokenizer)
        lengths = [len(ids) for ids in tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]]
        low, middle, high = np.percentile(lengths, [5, 50, 95])
        print(f"\nspread {spread:g}: {low:.0f}, {middle:.0f}, {high:.0f} tokens (5 %, median, 95 %)")
        compare(pipes, texts, given.rounds)
    for pipe in pipes.values():
        pipe.send(None)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
