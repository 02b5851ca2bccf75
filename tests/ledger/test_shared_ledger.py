"""Many processes on one ledger, some of them killed: no event is lost or doubled, and every run is finished once.

The larger one, with 64 workers, is `benchmarks/scale.py workers`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CODE = """
import sys
from pathlib import Path
from shared_ledger import Load, share
import shared_ledger
shared_ledger.BEAT_SECONDS, shared_ledger.SILENCE_SECONDS = 0.1, 1.5
found = share(Path(sys.argv[1]), Load(workers=8, arms=4, seeds=10, units=4, sleep=0.005, kills=6), seed=3)
assert not found.faults, found.faults
print(found.finished, found.killed, found.events - found.repeated - found.taken_over, found.reads > 0)
"""


def test_eight_workers_on_one_ledger_lose_and_double_no_event(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], cwd=BENCHMARKS, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["40", "6", str(40 * 5), "True"], "each run begins once, and has four steps"
