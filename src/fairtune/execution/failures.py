"""Why a run failed, in a sentence, and how that is recorded."""

from __future__ import annotations

import contextlib
import errno
import traceback
from typing import Any

from fairtune.core.errors import FairtuneError, RunFailure
from fairtune.core.files import write_sealed
from fairtune.core.locks import require_held
from fairtune.core.plugins import line_of
from fairtune.ledger.events import EventLog
from fairtune.study.run_spec import RunSpec

GONE = "its folder was deleted or moved away while it was training, so nothing of it is recorded"
DISK = "disk"
"""The cause of a failure after which no other run can be recorded either."""


def record_failure(spec: RunSpec, reason: str, cause: str, details: str | None = None) -> dict[str, Any]:
    """Write a failure into the ledger, as far as the disk still takes it; a study whose folder is gone gets none.

    Args:
        cause: run (it cannot go on), input, error (unforeseen), killed, or disk (full).
        details: where it was raised.

    Returns:
        The run's result.

    Raises:
        LeaseLost: another process has taken the run over, so it has not failed.
    """
    result = {"status": "failed", "signature": spec.signature, "key": spec.key, "reason": reason, "kind": cause}
    folder = spec.run
    require_held(folder.path)
    if folder.path.parent.parent.is_dir():
        with contextlib.suppress(OSError):
            if not folder.plan.exists():  # it failed before it began, and the folder must say of what it is
                folder.write_plan(spec.as_json())
            log = EventLog(folder.events)
            try:
                log.write("failed", 0, reason=reason, details=details)
            finally:
                log.close()
        with contextlib.suppress(OSError):
            write_sealed(folder.result, result)
    return result


def record_error(spec: RunSpec, error: Exception, begun: bool) -> dict[str, Any]:
    """Record that a run ended in an exception, and where that was raised unless the message says it all.

    Args:
        begun: whether the run's folder was made.
    """
    if begun and not spec.run.plan.exists():
        return record_failure(spec, GONE, "run")
    if _is_full_disk(error):
        cause = DISK
    else:
        cause = "run" if isinstance(error, RunFailure) else "input" if isinstance(error, FairtuneError) else "error"
    foreseen = isinstance(error, RunFailure | FairtuneError)
    details = None if foreseen else "".join(traceback.format_exception(error, limit=-6))
    return record_failure(spec, failure_reason(error), cause, details)


def failure_reason(error: BaseException) -> str:
    """Why a run failed, in a sentence."""
    from fairtune.core.out_of_memory import is_out_of_memory  # imports torch, which only workers have

    if isinstance(error, RunFailure | FairtuneError):
        return str(error)
    if is_out_of_memory(error):
        return (
            "out of memory; steps and evaluations are split automatically, so it is the model with its optimizer that does "
            "not fit: use a smaller model, a method that trains fewer weights, fewer runs at once or a device with more memory"
        )
    if _is_full_disk(error):
        return "the disk is full; free some space and run the same command again, what is recorded is kept"
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}{line_of(error)}"


def _is_full_disk(error: BaseException) -> bool:
    """Also when a library says so in words of its own, as safetensors does."""
    known = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return known or "No space left on device" in str(error)
