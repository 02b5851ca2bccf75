"""The classic BP-SOM of 1997 with fairtune's map: a sigmoid network that learns online and prunes its hidden units.

    python examples/bpsom_classic.py trace tests/som/trace    # follows a run of the original program, prints its score lines
    python examples/bpsom_classic.py parity                   # learns 12-bit parity from 1000 of the 4096 rows, and prunes

Everything is in float64, so that the original program can be followed to the last printed digit. Parity has inputs of -1 and 1
and a smaller alpha than the published .25: before a network has learned, cells are pure by chance only, and a strong pull towards
them makes it give up units that it needs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from bpsom_network import Part, Score, Settings, new_network, train
from bpsom_original import load, trace


def parity_parts(bits: int, training: int, development: int, seed: int) -> list[Part]:
    """All rows of the parity problem, shuffled, in three parts."""
    rows = np.random.default_rng(seed).permutation(2**bits)
    ones = (rows[:, None] >> np.arange(bits)) & 1
    whole = Part(np.where(ones, 1.0, -1.0), ones.sum(1) % 2)
    cuts = (slice(training), slice(training, training + development), slice(training + development, None))
    return [Part(whole.x[cut], whole.y[cut]) for cut in cuts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("trace", help="follow a run of the original program").add_argument("folder", type=Path)
    parity = what.add_parser("parity", help="learn parity and prune")
    parity.add_argument("--bits", type=int, default=12)
    parity.add_argument("--training", type=int, default=1000, help="examples to learn from")
    parity.add_argument("--development", type=int, default=500, help="examples to choose the best epoch by")
    parity.add_argument("--hidden", type=int, default=20)
    parity.add_argument("--grid", type=int, default=7)
    parity.add_argument("--epochs", type=int, default=150)
    parity.add_argument("--lr", type=float, default=0.15)
    parity.add_argument("--momentum", type=float, default=0.4)
    parity.add_argument("--alpha", type=float, default=0.05)
    parity.add_argument("--prune", type=float, default=0.02)
    parity.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "trace":
        if not (asked.folder / "t.prm").is_file():
            parser.error(f"{asked.folder} has no t.prm; give the folder of a run of the original program")
        network, parts = load(asked.folder)
        trace(network, parts, lambda score: print(score.line(network.settings.epochs)))
        return
    settings = Settings(
        asked.epochs,
        asked.hidden,
        asked.grid,
        asked.epochs,
        asked.alpha,
        prune=asked.prune,
        lr=asked.lr,
        momentum=asked.momentum,
    )
    parts = parity_parts(asked.bits, asked.training, asked.development, asked.seed)
    network = new_network(settings, asked.bits, 2, asked.seed)
    started, used = time.perf_counter(), 0.0

    def tell(score: Score) -> None:
        nonlocal used
        if score.learning:
            used = score.used
        elif score.part == 3 and (score.epoch % 10 == 0 or score.epoch == 1):
            print(
                f"epoch {score.epoch:4d}: {score.units:2d} units, test accuracy {100 - score.wrong:6.2f} %, "
                f"SOM error used for {used:5.1f} %, {time.perf_counter() - started:5.1f} s",
                flush=True,
            )

    epoch, best = train(network, *parts, tell)
    score = best.look(parts[2], epoch, 3)
    print(
        f"best epoch {epoch}: {score.units} of {settings.hidden} units, {100 - score.wrong:.2f} % of "
        f"{len(parts[2].y)} unseen rows right"
    )


if __name__ == "__main__":
    main()
