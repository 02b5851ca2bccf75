"""`fairtune validate`: is this study file right?"""

from __future__ import annotations

from dataclasses import asdict

from fairtune.cli.command import (
    AsJson,
    StudyFile,
    console,
    print_json,
    report_errors,
)
from fairtune.study.study_file import check_file, find_absences


@report_errors
def validate(file: StudyFile, as_json: AsJson = False) -> None:
    """Check a study file, with each of its profiles; all problems at once.

    Looks at its data files (are they there, can they be read, do they have the columns and labels) and at the models it names, too.
    """
    study = check_file(file)
    absent = find_absences(file)
    if as_json:
        answer = {"valid": True, "study": study.study, "arms": list(study.arms), "profiles": list(study.profiles)}
        print_json({**answer, "not_here": [asdict(problem) for problem in absent]})
        return
    profiles = f"; profiles: {', '.join(study.profiles)}" if study.profiles else ""
    count = len(study.arms) * len(study.seeds)
    arms, seeds, runs = (
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((len(study.arms), "arm"), (len(study.seeds), "seed"), (count, "run"))
    )
    counts = f"{arms} x {seeds} = {runs}"
    console().print(f"{file}: valid. {counts}{profiles}", soft_wrap=True)
    for problem in absent:
        console().print(f"not on this machine: {problem}", soft_wrap=True)
