"""`fairtune validate`: is this study file right?"""

from __future__ import annotations

from fairtune.cli.command import (
    AsJson,
    StudyFile,
    console,
    print_json,
    report_errors,
)
from fairtune.study.study_file import check_file


@report_errors
def validate(file: StudyFile, as_json: AsJson = False) -> None:
    """Check a study file, with each of its profiles; all problems at once."""
    study = check_file(file)
    if as_json:
        print_json({"valid": True, "study": study.study, "arms": list(study.arms), "profiles": list(study.profiles)})
        return
    profiles = f"; profiles: {', '.join(study.profiles)}" if study.profiles else ""
    count = len(study.arms) * len(study.seeds)
    counts = f"{len(study.arms)} arms x {len(study.seeds)} seeds = {count} runs"
    console().print(f"{file}: valid. {counts}{profiles}", soft_wrap=True)
