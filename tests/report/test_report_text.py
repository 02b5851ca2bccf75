"""Reports of language models: best and final, changes in percent, the tokenizer, the target loss, samples."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_ledger import QK
from made_text_ledger import PROMPTS, MadeTextLedger, TextArm
from page_script import without_script
from rich.console import Console

from fairtune.analysis.study_verdict import Finding
from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.terminal import verdict_table
from fairtune.report.writer import make_content, write_report

MakeText = Callable[..., MadeTextLedger]


def row(content: ReportContent, arm: str) -> ArmRow:
    return next(row for row in content.rows if row.arm == arm)


def finding(content: ReportContent, arm: str) -> Finding:
    return next(finding for finding in content.sections["findings"].findings if finding.arm == arm)


def files(made: MadeTextLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(made.results()).items()}


def in_terminal(made: MadeTextLedger) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=100, force_terminal=False).print(verdict_table(made.results()))
    return buffer.getvalue()


def test_best_and_final_are_two_figures(text_content: ReportContent) -> None:
    arm = row(text_content, "oelm-freeze")
    best = [math.exp(loss) for loss in (1.60, 1.62, 1.61)]
    assert arm.summaries["perplexity"].mean == pytest.approx(sum(best) / 3)
    assert arm.final is not None
    assert arm.final.mean == pytest.approx(sum(best) / 3 * math.exp(0.01))
    assert list(arm.summaries) == ["perplexity", "word_perplexity", "bits_per_byte", "loss", "token_accuracy"]
    assert arm.tokens_per_second == pytest.approx(4096)


def test_an_inferior_arm_is_reported_in_perplexity_and_percent_with_its_margin(text_content: ReportContent) -> None:
    found = finding(text_content, "oelm-freeze")
    assert found.word == "inferior"
    assert re.fullmatch(
        r"inferior to baseline: perplexity is higher by 0\.740, which is 17\.4 % \(n = 3; alone \+\S+ % to \+\S+ %, p \S ?\.\d+; "
        r"among 7 comparisons \+\S+ % to \+\S+ %, Holm p \S ?\.\d+\); a loss beyond the margin, 5 %, is shown\.",
        found.text,
    )


def test_lower_is_better(text_content: ReportContent) -> None:
    found = finding(text_content, "baseline-1e-3")
    assert found.word == "better"
    assert found.text.startswith("better than baseline: perplexity is lower by 0.167, which is 3.9 % (n = 3; alone −")
    assert found.text.endswith("By less than the margin.")
    assert "perplexity is higher by 0.009" in finding(text_content, "oelm-random").text
    assert finding(text_content, "oelm-random").text.startswith("equivalent to baseline: ")
    assert "a loss or gain of the margin, 5 %, is ruled out" in finding(text_content, "oelm-random").text
    assert finding(text_content, "baseline").text.startswith("the reference of all comparisons: perplexity 4.263 (95 %")


def test_nothing_of_a_classifier_is_said(text_files: dict[str, str]) -> None:
    for kind in ("html", "markdown"):
        page = re.sub(r"<(style|svg).*?</\1>", "", text_files[kind], flags=re.DOTALL)
        assert not re.search(r"\b(points|examples)\b", page)
        assert not re.search(
            r"\bcheckpoint\b", page.replace("there is no checkpoint", "").replace("selects checkpoints", "")
        )
        assert "data card" not in page
        assert "427." not in page, "a perplexity is not a share"
    assert "accuracy" not in text_files["html"].split("<h2>Scores</h2>")[0]


def test_the_tokenizer_stands_in_the_head_and_beside_the_figures(text_files: dict[str, str]) -> None:
    assert "tokenizer bpe-2000 (2,000 tokens)" in text_files["markdown"]
    assert "perplexity (per token, bpe-2000), best" in text_files["markdown"]
    assert "tokenizer <b>bpe-2000 (2,000 tokens)</b>" in text_files["html"]
    assert "perplexity is per token of bpe-2000." in text_files["html"]
    for kind in ("html", "markdown"):
        assert "cannot be compared with these" in text_files[kind]
        assert "gpt-mini" in text_files[kind]
        assert "trained from scratch" in text_files[kind]


def test_differences_stand_beside_their_change_in_percent(text_files: dict[str, str]) -> None:
    assert "| +0.740 (+17.4 %) | +0." in text_files["markdown"]
    assert "+0.740<br><small>+17.4\u00a0%</small>" in text_files["html"]


def test_a_target_that_is_never_reached_is_reported_so_and_never_zero(text_files: dict[str, str]) -> None:
    for kind in ("html", "markdown"):
        assert "not reached (0 of 3)" in text_files[kind]
        assert "120 (3 of 3)" in text_files[kind]
        assert ">0 (" not in text_files[kind]
    assert json.loads(text_files["json"])["rows"][2]["steps_to_target"] == {"0": None, "1": None, "2": None}
    assert "target loss 1.5" in text_files["html"]


def test_without_a_target_there_is_no_such_column(make_text: MakeText) -> None:
    made = make_text({"baseline": TextArm([1.4, 1.5])})
    texts = [*files(made).values(), in_terminal(made)]
    assert all("steps to a" not in text.replace("Steps", "steps") for text in texts)
    assert all("target loss " not in text for text in texts)


def test_the_data_are_documents_tokens_bytes_and_words(text_files: dict[str, str]) -> None:
    assert "| tokens | 500,000 | 12,500 | 15,000 |" in text_files["markdown"]
    assert "| tokens per byte | 0.250 | 0.250 | 0.250 |" in text_files["markdown"]
    assert "blocks of 128 tokens" in text_files["html"]
    assert "2,000 training, 50 validation, 60 test documents" in text_files["html"]


def test_a_fresh_model_is_compared_with_its_own_draw(text_files: dict[str, str], text_content: ReportContent) -> None:
    assert "fresh weights of this seed, drawn once more" in text_files["html"]
    assert "7 tensors as in the fresh weights" in text_files["html"]
    assert "7 tensors equal those of the fresh weights bit for bit" in text_files["markdown"]
    assert text_content.header.from_scratch


def test_the_table_fits_in_a_hundred_columns_with_one_line_per_arm(
    kept_text_ledger: MadeTextLedger, make_text: MakeText
) -> None:
    usual = {arm: spec for arm, spec in kept_text_ledger.arms.items() if "global" not in arm}
    text = in_terminal(make_text(usual))
    assert max(len(line) for line in text.splitlines()) <= 100
    below = text[text.index("─\n") + 2 :].splitlines()
    lines = {line.split()[0]: line for line in below[: len(usual)]}
    assert set(lines) == set(usual)
    assert re.search(
        r"3 +4\.759 ± 0\.210 +baseline-1e-3 +\+16\.2 \[\+\S+, \+\S+\] +\.\d+ +inferior", lines["oelm-freeze-1e-3"]
    )


def test_figures_out_of_all_proportion_fit_in_a_hundred_columns_too(kept_text_ledger: MadeTextLedger) -> None:
    text = in_terminal(kept_text_ledger)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "…" not in text
    assert "27.49 [5.06, 149]" in text, "± would lead below a perplexity of one"
    output = " ".join(text.split())
    assert "with the weights of the last step: baseline 4.306; " in output
    assert "perplexity: lower is better; per token of bpe-2000 (2,000 tokens)" in output
    assert "oelm-freeze not reached (0 of 3)" in output
    assert "failed: oelm-random-1e-3/seed-1: the loss is nan at step 30" in output


@pytest.mark.usefixtures("undrawn")
def test_one_run_has_figures_but_no_interval_and_no_verdict(make_text: MakeText) -> None:
    made = make_text({"baseline": TextArm([1.45]), "oelm": TextArm([1.6], methods=QK)})
    content = make_content(made.results())
    assert finding(content, "oelm").text.startswith("no verdict against baseline: one run only")
    assert finding(content, "baseline").text.endswith(
        "perplexity 4.263 in its one finished run; an interval takes two."
    )
    assert "| oelm | 1 | 4.953 | 5.003 | baseline (4.263) | – | – | – | **no verdict**" in files(made)["markdown"]
    assert "4.953" in in_terminal(made)


@pytest.mark.parametrize("arm", ["baseline", "oelm"])
def test_an_infinite_perplexity_is_shown_as_such(make_text: MakeText, arm: str) -> None:
    losses = {"baseline": [1.45, 1.46], "oelm": [1.6, 1.61]}
    losses[arm][1] = 800.0
    made = make_text({name: TextArm(loss) for name, loss in losses.items()})
    written = files(made)
    assert "∞" in written["markdown"]
    assert "∞" in written["html"]
    assert "∞" in in_terminal(made)
    assert f"the perplexity of {arm}/seed-1 is not a finite number" in written["markdown"]
    assert (
        next(r for r in json.loads(written["json"])["rows"] if r["arm"] == arm)["summaries"]["perplexity"]["mean"]
        is None
    )


def test_a_model_no_better_than_a_guess_is_said_not_to_have_learned(make_text: MakeText) -> None:
    """The vocabulary has 2,000 tokens: a guess has a loss of 7.60."""
    made = make_text({"baseline": TextArm([7.7, 7.61, 7.65]), "oelm": TextArm([1.5, 7.7, 1.52], methods=QK)})
    seen = {caution.code: caution.seen for caution in make_content(made.results()).sections["findings"].cautions}
    assert seen["not-learned"] == "baseline is no better than a guess among all tokens"
    assert seen["collapsed"].startswith(
        "1 of 3 runs of oelm did not learn (no better than a guess among all tokens), against 3 of 3"
    )
    assert not any("majority class" in text for text in seen.values())


@pytest.mark.parametrize("loss", [[None], ["it broke"], [1.4]])
def test_a_study_of_one_arm_can_be_reported_in_any_state(make_text: MakeText, loss: list[float | str | None]) -> None:
    made = make_text({"baseline": TextArm(loss)}, target_loss=1.0)
    assert all("baseline" in text for text in [*files(made).values(), in_terminal(made)])


def test_a_margin_in_the_unit_of_perplexity(make_text: MakeText) -> None:
    arms = {"baseline": TextArm([1.45, 1.46, 1.44]), "oelm": TextArm([1.60, 1.62, 1.61])}
    content = make_content(make_text(arms, margin=0.25).results())
    assert finding(content, "oelm").text.endswith("a loss beyond the margin, 0.2500, is shown.")


def test_early_perplexities_do_not_flatten_the_curve(text_files: dict[str, str]) -> None:
    assert "validation perplexity, lower is better" in text_files["html"]
    assert ">10,000<" in text_files["html"], "ticks of a logarithmic scale"


def test_samples_stand_side_by_side_as_illustrations(text_content: ReportContent, text_files: dict[str, str]) -> None:
    samples = text_content.sections["samples"]
    assert samples is not None
    assert (samples.seed, samples.remarks) == (0, ())
    assert [found.prompt for found in samples.prompts] == list(PROMPTS)
    assert list(samples.prompts[0].by_arm) == [row.arm for row in text_content.rows]
    for kind in ("html", "markdown"):
        assert "illustrations of one seed, not evidence" in text_files[kind]
    assert "<strong>Once upon a time</strong>, there was a little girl" in text_files["html"]
    assert "| baseline | **Once upon a time** , there was a little girl" in text_files["markdown"]


def test_samples_are_of_the_first_seed_that_all_arms_have_finished(make_text: MakeText) -> None:
    made = make_text({"baseline": TextArm([1.4, 1.4, 1.4]), "oelm": TextArm(["it broke", 1.5, 1.5])})
    samples = make_content(made.results()).sections["samples"]
    assert samples is not None
    assert (samples.seed, samples.remarks) == (1, ())


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "text", [None, "", "{", "[1]", "{}x", '[{"prompt": "a"}]', '[{"prompt": 1, "continuation": "b"}]']
)
def test_missing_and_damaged_samples_are_left_out_with_a_remark(make_text: MakeText, text: str | None) -> None:
    made = make_text({"baseline": TextArm([1.4, 1.4]), "oelm": TextArm([1.5, 1.5])})
    path = made.folder("oelm", 0).samples
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    results = made.results()
    samples = make_content(results).sections["samples"]
    assert samples is not None
    assert [list(found.by_arm) for found in samples.prompts] == [["baseline"]] * 2
    assert "oelm: " in samples.remarks[0]
    written = {kind: path.read_text() for kind, path in write_report(results).items()}
    assert all("seed 0" in page for page in (written["html"], written["markdown"]))
    assert "Left out: oelm: " in written["markdown"]


@pytest.mark.usefixtures("undrawn")
def test_hostile_samples_stay_text(make_text: MakeText) -> None:
    says = "</p><script>alert('x')</script>\n| a | **b** `c` <img src=x onerror=y>\x1b[2J &lt;"
    written = files(make_text({"baseline": TextArm([1.4, 1.4], says=says)}))
    assert "<img" not in written["html"]
    assert "&lt;/p&gt;&lt;script&gt;" in without_script(written["html"])
    line = next(line for line in written["markdown"].splitlines() if "alert" in line)
    assert not re.search(r"(?<!\\)<", line)
    assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert json.loads(written["json"])["samples"]["prompts"][0]["by_arm"]["baseline"] == says


def test_tables_have_as_many_cells_as_heads_and_nothing_is_said_about_the_machine(text_files: dict[str, str]) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", text_files["markdown"], flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert all("/secret/place" not in text for text in text_files.values())


def test_same_ledger_same_bytes(kept_text_ledger: MadeTextLedger, text_files: dict[str, str]) -> None:
    assert files(kept_text_ledger) == text_files


def test_a_classifier_has_no_samples_no_tokenizer_and_no_last_weights(
    content: ReportContent, written: dict[str, Path]
) -> None:
    assert (content.sections["samples"], content.header.text, content.header.from_scratch) == (None, None, False)
    assert {row.final for row in content.rows} == {None}
    for kind in ("html", "markdown"):
        text = written[kind].read_text()
        assert "Samples" not in text
        assert "perplexity" not in text
        assert "tokenizer" not in text
