"""t-SNE of vectors: neighbours stay neighbours on a plane, and nothing else is promised."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DIMENSIONS = 50
"""That principal components leave before t-SNE begins."""
PERPLEXITY = 30.0
SEED = 0
STEPS = 500
"""Twice as many take twice the time and change little."""


def on_a_plane(states: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Two coordinates an example; the same every time on the same machine.

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
