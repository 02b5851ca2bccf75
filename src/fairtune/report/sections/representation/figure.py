"""A cloud of points by t-SNE, as SVG by hand: a few bytes per point, in the page's own colours."""

from __future__ import annotations

import html

import numpy as np
import numpy.typing as npt

from fairtune.core.printable import clip
from fairtune.report.figures.palette import class_colours, hexadecimal
from fairtune.report.sections.representation.content import ArmRepresentation

SIZE, EDGE, CROSS = 320, 10, 3
"""Of the picture, its margin, and half the size of a mistake's mark."""
CAPS = (("round", 4.8), ("square", 3.8))
"""The ends of a line of next to no length, and its width: a dot, a square. They are given as a style, since matplotlib's
figures on the same page set the ends of all lines, which an attribute does not stand up to."""
LONGEST = 18
Points = npt.NDArray[np.int64]


def cloud_svg(arm: ArmRepresentation, labels: tuple[str, ...]) -> str:
    """Every example in its class's colour, round or square by turns, with a cross where the run got it wrong.

    More than two classes also have their names amid them.
    """
    assert arm.vectors is not None
    points, colours = _scaled(on_a_plane(arm.vectors.states)), class_colours(len(labels))
    parts = []
    for number in range(len(labels)):
        own = points[arm.vectors.labels == number]
        dots = "".join(f"M{x} {y}h.01" for x, y in own.tolist())
        (end, wide), colour = CAPS[number % 2], hexadecimal(colours[number])
        parts.append(
            f'<path d="{dots}" stroke="{colour}" style="stroke-linecap:{end}" stroke-width="{wide}" opacity=".8"/>'
        )
    crosses = "".join(
        f"M{x - CROSS} {y - CROSS}l{2 * CROSS} {2 * CROSS}m0-{2 * CROSS}l-{2 * CROSS} {2 * CROSS}"
        for x, y in points[arm.vectors.wrong].tolist()
    )
    parts.append(f'<path d="{crosses}" stroke="currentColor" stroke-width=".9"/>')
    names = ""
    if len(labels) > 2:
        names = "".join(_name(points[arm.vectors.labels == number], name) for number, name in enumerate(labels))
    label = html.escape(f"Test examples as {arm.arm}, seed {arm.seed}, sees them", quote=True)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{label}"><g fill="none">'
        f'{"".join(parts)}</g><g font-size="11" font-weight="600" text-anchor="middle" fill="currentColor" '
        f'stroke="var(--panel)" stroke-width="3" paint-order="stroke">{names}</g></svg>'
    )


def _scaled(found: npt.NDArray[np.float64]) -> Points:
    """Whole numbers within the picture, both directions at one scale."""
    low, high = found.min(axis=0), found.max(axis=0)
    by = (SIZE - 2 * EDGE) / max(float((high - low).max()), 1e-9)
    middle = (low + high) / 2
    return np.asarray(np.rint((found - middle) * by + SIZE / 2), dtype=np.int64)


def _name(own: Points, name: str) -> str:
    if not len(own):
        return ""
    x, y = np.median(own, axis=0).round().astype(int).tolist()
    short = clip(name, LONGEST)
    return f'<text x="{x}" y="{y}">{html.escape(short)}</text>'


DIMENSIONS = 50
"""That principal components leave before t-SNE begins."""
PERPLEXITY = 30.0
SEED = 0
STEPS = 500
"""Twice as many take twice the time and change little."""


def on_a_plane(states: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Two coordinates per example; the same every time on the same machine.

    One thread: sums of several threads come in another order every time, which t-SNE does not forgive.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    n, width = states.shape
    with threadpool_limits(limits=1):
        few = PCA(min(DIMENSIONS, n, width), svd_solver="covariance_eigh").fit_transform(states.astype(np.float64))
        perplexity = min(PERPLEXITY, (n - 1) / 3)
        start = "pca" if few.shape[1] > 1 else "random"
        tsne = TSNE(perplexity=perplexity, init=start, max_iter=STEPS, random_state=SEED, n_jobs=1)
        return np.asarray(tsne.fit_transform(few), dtype=np.float64)
