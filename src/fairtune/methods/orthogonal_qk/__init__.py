"""OELM: re-initialise the query and key projections of every attention layer, and freeze them."""

from fairtune.methods.orthogonal_qk import arms  # noqa: F401 - registers the named arms
from fairtune.methods.orthogonal_qk.config import OrthogonalQKConfig
from fairtune.methods.registry import register

register(
    "orthogonal_qk",
    OrthogonalQKConfig,
    "fairtune.methods.orthogonal_qk.method:OrthogonalQK",
    claims=["query and key projections"],
)
