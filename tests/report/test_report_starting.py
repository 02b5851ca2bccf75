"""What each arm started from: the geometry of its attention, its logits, and proof that frozen tensors stayed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_card import made_card
from made_ledger import QK, ArmSpec, MadeLedger

from fairtune.core.files import read_json, write_json
from fairtune.core.numbers import error_size, significant, trains
from fairtune.report.content import ReportContent
from fairtune.report.html import HtmlExporter
from fairtune.report.init_cards import CardSummary
from fairtune.report.sections.start.attention import (
    LEVELS,
    head_maps,
    layer_rows,
    spread_curves,
)
from fairtune.report.sections.start.figure import spread_svg
from fairtune.report.writer import make_content, write_report

ATTENTION = made_card(frozen=True, changed=True)["attention"]


def spread_figure(content: ReportContent) -> str | None:
    return spread_svg(content.sections["start"].cards, [row.arm for row in content.rows], content.header.from_scratch)


def card(content: ReportContent, arm: str) -> CardSummary:
    return next(card for card in content.sections["start"].cards if card.arm == arm)


def edit_card(ledger: MadeLedger, *arms: str, **changes: object) -> ReportContent:
    for arm in arms:
        path = ledger.folder(arm, 0).card
        found = read_json(path)
        assert found is not None
        write_json(path, {**found, **changes})
    return make_content(ledger.results())


def test_a_row_a_projection_with_the_worst_and_the_mean_of_its_heads() -> None:
    rows = layer_rows(ATTENTION)
    assert [(row.block, row.part) for row in rows] == [(0, "query"), (0, "key"), (1, "query"), (1, "key")]
    first = rows[0]
    assert first.orthogonality_error == 4.8e-7
    assert (first.row_norm, first.checkpoint_row_norm) == (1.0, pytest.approx(1.7))
    assert first.row_space_cosine == pytest.approx(0.95)
    assert first.difference_norm == pytest.approx(5.0)
    assert (first.logit_spread, first.checkpoint_logit_spread) == (pytest.approx(0.5), pytest.approx(1.6))
    assert (first.changed, first.frozen) == (True, True)


def test_logits_that_cannot_be_assigned_to_layers_leave_the_column_empty() -> None:
    logits = [{**entry, "layer": entry["layer"].replace("att", "encoder_att")} for entry in ATTENTION["logits"]]
    assert {row.logit_spread for row in layer_rows({**ATTENTION, "logits": logits})} == {None}
    assert {row.logit_spread for row in layer_rows({**ATTENTION, "logits": []})} == {None}


@pytest.mark.parametrize("attention", [None, {}, {"problem": "attention of unknown layout"}])
def test_attention_that_is_not_known_gives_no_rows(attention: dict[str, str] | None) -> None:
    assert layer_rows(attention) == []
    assert head_maps(attention) == []
    assert spread_curves(attention, "spread") == {}


def test_maps_of_heads_are_shaded_from_least_to_most() -> None:
    maps = {found.title: found for found in head_maps(ATTENTION)}
    differences = maps["Norm of the difference to the checkpoint"]
    assert differences.rows[0] == ("0 query", (("3.00", 0), ("4.00", LEVELS)))
    assert {level for _, cells in maps["Orthogonality error"].rows for _, level in cells} == {0}, (
        "rounding is no pattern"
    )
    assert all(found.heads == 2 for found in maps.values())
    unchanged = [found.title for found in head_maps(made_card(frozen=False, changed=False)["attention"])]
    assert unchanged == ["Spread of attention logits", "Row norm, the mean over a head's rows"]


def test_keys_may_have_fewer_heads_than_queries() -> None:
    layers = [{**e, "row_norm": e["row_norm"][:1] if e["part"] == "k" else e["row_norm"]} for e in ATTENTION["layers"]]
    norms = next(found for found in head_maps({**ATTENTION, "layers": layers}) if found.title.startswith("Row norm"))
    assert [len(cells) for _, cells in norms.rows] == [2, 1, 2, 1]
    assert norms.heads == 2


def test_frozen_tensors_are_proven_in_every_finished_run(content: ReportContent) -> None:
    proof = card(content, "oelm-freeze").proof
    assert proof is not None
    assert (proof.tensors, proof.runs) == (4, 3)
    assert card(content, "baseline").proof is None
    assert any("bit for bit" in note for note in content.sections["start"].notes)


def test_one_line_an_arm_that_does_not_start_with_the_checkpoints_logits(content: ReportContent) -> None:
    figure = spread_figure(content)
    assert figure is not None
    assert "checkpoint = baseline = baseline-fast = focal" in figure
    assert ">oelm-freeze<" in figure
    assert figure.count('id="spread-') == len(set(re.findall(r'id="(spread-[^"]*)"', figure)))


def test_arms_with_the_same_start_share_a_line(make_ledger: Callable[..., MadeLedger]) -> None:
    arms = {name: ArmSpec([300, 301], methods=QK) for name in ("oelm-freeze", "oelm-freeze-trainable")}
    figure = spread_figure(make_content(make_ledger({"baseline": ArmSpec([330, 331]), **arms}).results()))
    assert figure is not None
    assert ">oelm-freeze = oelm-freeze-trainable<" in figure


@pytest.mark.usefixtures("undrawn")
def test_without_measured_logits_there_is_no_figure(ledger: MadeLedger) -> None:
    content = edit_card(
        ledger, "baseline", "baseline-fast", "oelm-freeze", "focal", attention={**ATTENTION, "logits": []}
    )
    assert spread_figure(content) is None
    assert "Spread of attention logits by layer" not in HtmlExporter().render(content)


def test_encoder_and_decoder_have_a_panel_each(ledger: MadeLedger) -> None:
    kinds = ("encoder_attentions", "decoder_attentions", "cross_attentions")
    logits = [{"layer": f"{kind}.{n}", "spread": [0.5], "checkpoint": [1.5]} for kind in kinds for n in range(2)]
    figure = spread_figure(edit_card(ledger, "oelm-freeze", attention={**ATTENTION, "logits": logits}))
    assert figure is not None
    assert all(name in figure for name in (">encoder<", ">decoder<", ">decoder to encoder<"))


@pytest.mark.usefixtures("undrawn")
def test_a_problem_with_the_attention_is_reported(ledger: MadeLedger) -> None:
    content = edit_card(ledger, "focal", attention={"problem": "attention of <unknown> layout"})
    assert "attention of &lt;unknown&gt; layout" in HtmlExporter().render(content)
    assert card(content, "focal").geometry == {}


@pytest.mark.usefixtures("undrawn")
def test_a_tensor_may_train_in_part(ledger: MadeLedger) -> None:
    change = {"name": "qkv", "max_abs": 0.5, "relative": 0.58, "cosine": 0.89, "trainable": "partly"}
    assert "<td>partly</td>" in HtmlExporter().render(edit_card(ledger, "focal", changed=[change]))
    assert [trains(value) for value in (True, False, "partly")] == ["yes", "no", "partly"]


def test_geometry_is_in_every_file_and_all_of_it_in_json(written: dict[str, Path]) -> None:
    for kind in ("html", "markdown"):
        text = written[kind].read_text()
        assert "5e−7" in text
        assert "|W Wᵀ − I|".replace("|", r"\|" if kind == "markdown" else "|") in text
    answer = next(c for c in json.loads(written["json"].read_text())["cards"] if c["arm"] == "oelm-freeze")
    assert answer["attention"] == ATTENTION
    assert answer["costs"]["optimizer_bytes_saved"] == 800
    assert answer["proof"] == {"tensors": 4, "runs": 3}


def test_the_page_names_layers_and_heads(written: dict[str, Path]) -> None:
    text = written["html"].read_text()
    assert text.count("Queries and keys, layer by layer") == 4
    assert '<td title="layer.1.attention.k">key</td>' in text
    assert f'class="s{LEVELS}"' in text


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_cards_without_attention_keeps_its_list(ledger: MadeLedger) -> None:
    arms = [arm for arm in ledger.arms if ledger.folder(arm, 0).card.exists()]
    edit_card(ledger, *arms, attention=None, costs=None)
    text = write_report(ledger.results())["html"].read_text()
    assert "spread of logits" not in text
    assert "7 tensors as in the checkpoint" in text


@pytest.mark.parametrize(
    ("value", "expected"), [(4.8e-7, "5e−7"), (0.4931, "0.493"), (0.0, "0"), (None, "–"), (float("inf"), "–")]
)
def test_small_errors_are_reported_by_their_magnitude(value: float | None, expected: str) -> None:
    assert error_size(value) == expected


def test_three_digits_of_the_rounded_value() -> None:
    assert [significant(value) for value in (0.99996, 1.0, 9.996, 0.0651)] == ["1.00", "1.00", "10.0", "0.0651"]
