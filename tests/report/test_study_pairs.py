"""Studies side by side: figures only of the same task, verdicts only within a study, and everything that differs by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hostile import ALL, raw_codes
from tests.report.made_ledger import STUDY, MadeLedger
from tests.report.made_pairs import change_plan, made_pair
from typer.testing import CliRunner

from fairtune.analysis.results import load_results
from fairtune.analysis.study_pairs import NOT_JUDGED, StudiesBeside, compare_studies
from fairtune.cli.app import app
from fairtune.core.errors import FairtuneError
from fairtune.ledger.folders import study_names
from fairtune.report.study_pairs import default_folder, studies_html, studies_json, studies_markdown, write_studies


def beside(*made: MadeLedger) -> StudiesBeside:
    return compare_studies([load_results(one.runs, STUDY) for one in made])


def test_arms_stand_side_by_side_with_the_figures_of_their_own_reports(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    found = beside(one, two)
    assert found.comparable
    assert [study.label for study in found.studies] == ["one/made", "two/made"]
    assert [arm.arm for arm in found.arms] == ["baseline", "focal", "fgm"], "shared arms come first"
    for results, place in ((one.results(), 0), (two.results(), 1)):
        for arm in found.arms:
            figure = arm.figures[place]
            if arm.arm not in results.arms:
                assert figure is None
                continue
            assert figure is not None
            own, comparison = results.summary(arm.arm), results.comparison(arm.arm)
            assert (figure.n, figure.mean, figure.low, figure.high) == (own.n, own.mean, own.low, own.high)
            assert figure.word == (comparison.verdict.word if comparison else "reference")
            assert figure.against == (comparison.reference if comparison else None)


def test_what_differs_is_named(tmp_path: Path) -> None:
    found = beside(*made_pair(tmp_path))
    differing = {one.name: one.values for one in found.differing}
    assert differing["seeds"] == ("0 to 2", "0, 1")
    assert differing["all arms: lr"] == ("2e-05", "0.0001")
    (lr,) = found.arms[0].settings
    assert (lr.name, lr.values) == ("lr", ("2e-05", "0.0001"))
    assert not found.arms[1].settings, "an arm of one study differs from none"


def test_between_studies_nothing_is_judged(tmp_path: Path) -> None:
    found = beside(*made_pair(tmp_path))
    for text in (studies_markdown(found), studies_html(found), studies_json(found)):
        assert NOT_JUDGED in text.replace("\\", "")
    words = {figure.word for arm in found.arms for figure in arm.figures if figure is not None}
    assert words <= {
        "reference",
        "better",
        "worse",
        "inferior",
        "not inferior",
        "equivalent",
        "not separable",
        "no verdict",
    }


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ({"fingerprint": "e" * 64}, "data (fingerprint)"),
        ({"metric": "macro_f1"}, "metric"),
        ({"labels": ["bad", "good"]}, "labels"),
    ],
)
def test_other_tasks_are_not_put_side_by_side(tmp_path: Path, task: dict[str, object], name: str) -> None:
    one, two = made_pair(tmp_path)
    change_plan(two, task=task)
    found = beside(one, two)
    assert name in [difference.name for difference in found.blocking]
    assert not found.arms
    for text in (studies_markdown(found), studies_html(found)):
        assert "not shown side by side" in text
        assert "84.00" not in text


def test_the_same_data_under_another_name_are_the_same(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    change_plan(two, task={"name": "renamed", "hashes": {"test": "a" * 64}})
    assert beside(one, two).comparable, "the fingerprint says what the data are; older plans lack hashes"


def test_another_model_is_named_and_does_not_stand_in_the_way(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    change_plan(two, model={"name": "other", "identity": "6" * 64})
    found = beside(one, two)
    assert found.comparable
    assert {"model", "model (identity)"} <= {difference.name for difference in found.differing}


def test_a_study_is_not_compared_with_itself(tmp_path: Path) -> None:
    one, _ = made_pair(tmp_path)
    with pytest.raises(FairtuneError, match="same study twice"):
        beside(one, one)
    with pytest.raises(FairtuneError, match="one study only"):
        beside(one)


def test_files_are_written_where_no_study_is_taken_for_them(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    found = beside(one, two)
    folder = default_folder(one.runs, found)
    written = write_studies(found, folder)
    assert {path.name for path in written.values()} == {"index.html", "compare.md", "compare.json"}
    assert study_names(one.runs) == [STUDY]
    content = json.loads(written["json"].read_text())
    assert content["comparable"]
    assert content["arms"][0]["figures"][0]["n"] == 3
    page = written["html"].read_text()
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    change_plan(two, model={"name": ALL}, task={"source": ALL, "name": ALL})
    found = beside(one, two)
    assert raw_codes(studies_html(found)) == []
    assert "<img src=x" not in studies_html(found)
    assert raw_codes(studies_markdown(found)) == []
    assert raw_codes(studies_json(found)) == []
    assert default_folder(one.runs, found).parent == one.runs / "compare"


def invoke(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


@pytest.mark.parametrize("verb", ["compare", "report"])
def test_both_verbs_take_names_and_folders(tmp_path: Path, verb: str) -> None:
    one, two = made_pair(tmp_path)
    code, shown = invoke(verb, STUDY, two.runs / STUDY, "--runs", one.runs)
    assert code == 0, shown
    assert "84.00" in shown
    assert (one.runs / "compare" / "one-made--two-made" / "index.html").is_file()
    code, shown = invoke(verb, STUDY, two.runs / STUDY, "--runs", one.runs, "-o", tmp_path / "there", "--json")
    assert json.loads(shown)["metric"] == "accuracy"
    assert (tmp_path / "there" / "index.html").is_file()


def test_mistakes_are_told_in_a_sentence(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    for words, sentence in (
        (("compare", STUDY, "mode"), "no study 'mode'"),
        (("compare", STUDY, f"{STUDY}/baseline/seed-0"), "runs and studies"),
        (("compare", STUDY), "one study only"),
        (("compare", f"{STUDY}/baseline/seed-9", f"{STUDY}/baseline/seed-0"), "is not a run"),
        (("report", STUDY, two.runs / STUDY, "--format", "latex"), "--format is for one study"),
        (("report", STUDY, two.runs / STUDY, "--watch"), "--watch is for one study"),
    ):
        code, shown = invoke(*words, "--runs", one.runs)
        assert code == 2, words
        assert sentence in " ".join(shown.split()), words
