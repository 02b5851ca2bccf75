"""What a worker and the command line import; see tests/warm.py."""

from __future__ import annotations

import matplotlib.backends.backend_svg  # noqa: F401
import peft  # noqa: F401
import pyarrow.parquet  # noqa: F401
import sklearn.metrics  # noqa: F401
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig  # noqa: F401
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.models.bert import modeling_bert  # noqa: F401

import fairtune.cli.app
import fairtune.cli.report
import fairtune.cli.run
import fairtune.execution.executors.worker
import fairtune.execution.run
import fairtune.execution.study_run
import fairtune.methods.bpsom
import fairtune.monitor.terminal
import fairtune.report.figures.canvas
import fairtune.report.sections.catalogue
import fairtune.report.writer
import fairtune.testing.runs  # noqa: F401
import tests.execution.conftest  # noqa: F401

get_checkpoint_conversion_mapping("bert")
