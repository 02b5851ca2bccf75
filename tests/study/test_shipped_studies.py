"""What is shipped works: every study file with all its profiles, and the study that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairtune.study.loading import check_file, load_study
from fairtune.study.yaml_tree import parse_yaml

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "studies").glob("*.yaml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_shipped_study_is_valid_with_all_its_profiles(file: Path) -> None:
    study = check_file(file)
    assert study.study == file.stem
    assert study.compare.to in study.arms


def test_the_demo_has_a_control_for_its_learning_rate() -> None:
    study = load_study(ROOT / "studies" / "movie-reviews.yaml", profile="demo")
    assert list(study.arms) == ["baseline", "baseline-fast", "freeze-pretrained", "oelm-freeze", "oelm-random"]
    rates = {arm: study.settings(arm).lr for arm in study.arms}
    assert len(set(rates.values())) == 2
    assert rates["baseline-fast"] == rates["oelm-freeze"] == pytest.approx(5 * rates["baseline"])


def test_the_study_in_the_readme_is_valid() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert load_study(parse_yaml(block).data).study == "movie-reviews"
