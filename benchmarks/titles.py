"""How well made titles teach what real extracted titles are wrong.

    FAIRTUNE_MIRROR=<mirror> python benchmarks/titles.py [--runs runs]

Runs `studies/titles.yaml`: MiniLM, trained on titles made of the mirror's correct ones, tested on the 976 real titles of
titles/citeseerx, next to the majority class and naive Bayes trained on the same made titles. The kinds and their weights were
chosen with the development half of the real titles in view, so the held-out half is the figure to trust. Runs that are finished
are kept; called again, it only prints.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from fairtune.api import run_study
from fairtune.ledger.predictions import read_predictions
from fairtune.study.study_file import load_study
from fairtune.tasks import Split, Task, load_task
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.text_hashes import unit_hash
from fairtune.tasks.titles.grammar import KINDS
from fairtune.tasks.titles.made_titles import CORRECT
from fairtune.tasks.titles.task import made_titles

STUDY = Path(__file__).parents[1] / "studies" / "titles.yaml"
Right = npt.NDArray[np.bool_]
"""Whether each title was classified rightly."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=Path, default=Path("runs"))
    given = options.parse_args()
    run_study(STUDY, given.runs)
    folders = sorted(path.parent for path in (given.runs / "titles" / "baseline").glob("seed-*/result.json"))
    task = load_task("titles")
    _print_real(task.splits["test"], {**_peers(task), "MiniLM": [_right(folder, "test") for folder in folders]})
    _print_made(folders)


def _development(test: Split) -> Right:
    """The half of each class that was looked at while the kinds were written: the lower half by this hash."""
    ranks, half = (
        np.array([unit_hash(f"halves\2{title}") for (title,) in test.texts]),
        np.zeros(len(test), dtype=np.bool_),
    )
    for label in np.unique(test.labels):
        members = np.flatnonzero(test.labels == label)
        half[members[np.argsort(ranks[members], kind="stable")][: len(members) // 2]] = True
    return half


def _peers(task: Task) -> dict[str, list[Right]]:
    train, test = fixed_sample(task.splits["train"], load_study(STUDY).train.examples), task.splits["test"]
    texts = [[title for (title,) in split.texts] for split in (train, test)]
    bayes = make_pipeline(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+"), MultinomialNB())
    bayes.fit(texts[0], train.labels)
    return {
        "all called correct (the majority)": [test.labels == 1],
        "naive Bayes, words and pairs": [bayes.predict(texts[1]) == test.labels],
    }


def _right(folder: Path, split: str) -> Right:
    found = read_predictions(folder / "predictions.parquet", split)
    return np.asarray(found.scores.argmax(axis=1) == found.labels)


def _print_real(test: Split, models: dict[str, list[Right]]) -> None:
    seen = _development(test)
    parts = {"held-out half": ~seen, "development half": seen, "all": np.ones(len(test), dtype=np.bool_)}
    heads = [f"{name}, n = {part.sum()}" for name, part in parts.items()]
    print(
        f"| trained on made titles only | runs | {' | '.join(heads)} | wrong found, held-out | correct kept, held-out |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, runs in models.items():
        cells = [_accuracy([run[part] for run in runs]) for part in parts.values()]
        cells += [
            f"{100 * np.mean([run[~seen & (test.labels == label)].mean() for run in runs]):.1f}" for label in (0, 1)
        ]
        print(f"| {name} | {len(runs)} | {' | '.join(cells)} |")
    print("± is the 95 % interval of the mean over seeds, [ ] Wilson's over titles.\n")


def _accuracy(runs: list[Right]) -> str:
    """Mean accuracy in percent with both of its uncertainties."""
    each = np.array([run.mean() for run in runs])
    mean, n = float(each.mean()), len(runs[0])
    low, high = stats.binomtest(round(mean * n), n).proportion_ci(method="wilson")
    spread = stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / len(each) ** 0.5 if len(each) > 1 else None
    return (
        f"{100 * mean:.1f}{f' ± {100 * spread:.1f}' if spread is not None else ''} [{100 * low:.1f}, {100 * high:.1f}]"
    )


def _print_made(folders: list[Path]) -> None:
    """Accuracy on the made titles that selected the checkpoint, by kind."""
    made = made_titles()
    found = read_predictions(folders[0] / "predictions.parquet", "validation")
    rows = [int(identity.rpartition("-")[2]) for identity in found.ids]
    names = np.array([made[row - 1].kind for row in rows])
    right = np.mean([_right(folder, "validation") for folder in folders], axis=0)
    print("| kind of made title (validation) | n | classified rightly, % |\n|---|---|---|")
    for name in (CORRECT, *KINDS):
        members = names == name
        if members.any():
            print(f"| {name} | {members.sum()} | {100 * right[members].mean():.0f} |")


if __name__ == "__main__":
    main()
