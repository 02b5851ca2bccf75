"""Layer-wise rates: the lower a layer, the slower it learns."""

from fairtune.methods.layerwise_lr.config import LayerwiseLRConfig
from fairtune.methods.registry import register

register(
    "layerwise_lr",
    LayerwiseLRConfig,
    "fairtune.methods.layerwise_lr.method:LayerwiseLR",
    claims=["learning rates of the layers"],
)
