"""Adversarial training: the model also learns from token vectors that are moved to where its loss is higher."""

from fairtune.methods.adversarial.config import FGMConfig, FreeLBConfig, PGDConfig
from fairtune.methods.registry import register

_CLAIMS = ["perturbation of the embeddings"]

register("fgm", FGMConfig, "fairtune.methods.adversarial.ascending:Ascending", claims=_CLAIMS)
register("pgd", PGDConfig, "fairtune.methods.adversarial.ascending:Ascending", claims=_CLAIMS, toy={"steps": 2})
register("freelb", FreeLBConfig, "fairtune.methods.adversarial.freelb:FreeLB", claims=_CLAIMS, toy={"steps": 2})
