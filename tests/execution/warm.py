"""What a worker and the command line import; see tests/warm.py."""

from __future__ import annotations

import peft  # noqa: F401
import sklearn.metrics  # noqa: F401
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig  # noqa: F401
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.models.bert import modeling_bert  # noqa: F401

import fairtune.cli.app
import fairtune.cli.run
import fairtune.execution.executors.worker
import fairtune.execution.run
import fairtune.methods.bpsom.method
import fairtune.testing.runs  # noqa: F401
import tests.execution.conftest  # noqa: F401

get_checkpoint_conversion_mapping("bert")
