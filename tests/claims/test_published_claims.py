"""The claims that are shipped: valid, complete, and each with studies that have its arms."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from fairtune.claims.arithmetic import answer_counted, bands_of, judge_band
from fairtune.claims.published import FOLDER, ClaimTrial, claim_sources, load_claims, read_claims
from fairtune.claims.trial_costs import find_cost, load_trial
from fairtune.core.errors import FairtuneError
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.flops import count_flops
from fairtune.models.operations import PRESET, find_config
from fairtune.study import source
from fairtune.study.source import find_shipped
from fairtune.study.study_file import load_study

FILES = load_claims()
CLAIMS = [(source, claim) for source, file in FILES.items() for claim in file.claims]
TRIALS = {(t.file, t.profile, str(t.claims)): t for _, claim in CLAIMS for t in claim.trials}


def test_every_source_of_the_references_is_there() -> None:
    assert claim_sources() == ["bpsom", "oelm", "titles"]
    assert sorted(FOLDER.glob("*.yaml")), "as data of the package"
    assert len(CLAIMS) >= 30


@pytest.mark.parametrize("trial", TRIALS.values(), ids=lambda t: f"{t.study}-{t.profile}-{t.claims[0].statement}")
def test_every_trial_names_a_study_and_arms_that_are_there(trial: ClaimTrial) -> None:
    study = load_trial(trial)
    assert study.study == trial.study, "the name that its runs will have in the ledger"
    assert find_cost(trial).runs > 0
    for claim in trial.claims:
        if trial.size == "laptop" and claim.kind == "quality":
            assert claim.by is None, "a published figure says nothing about another model"


@pytest.mark.parametrize(("source", "claim"), CLAIMS, ids=lambda one: getattr(one, "id", one))
def test_every_claim_is_written_out(source: str, claim: object) -> None:
    found = next(one for one in FILES[source].claims if one is claim)
    assert all(text.strip() for text in (found.text, found.claimed, found.evidence, found.untried))
    assert found.text.endswith(".")
    assert {trial.size for trial in found.trials} <= {"published", "laptop"}
    if found.band is not None:
        assert len(bands_of(found.band)) == len(found.band.like), "each band is known"


def test_what_needs_no_runs_is_answered_by_itself() -> None:
    by_id = {claim.id: claim for _, claim in CLAIMS}
    words = {
        name: answer.word if answer else None
        for name in ("bert-share", "gpt-share", "xnli-speed", "freeze-speed", "sst2-step-time")
        if (counted := by_id[name].counted) is not None
        for answer in [answer_counted(counted)]
    }
    assert words == {
        "bert-share": "supported",
        "gpt-share": "contradicted",
        "xnli-speed": "implausible",
        "freeze-speed": None,
        "sst2-step-time": None,
    }
    assert by_id["xnli-gain"].band is not None
    assert judge_band(by_id["xnli-gain"].band)[0] == "implausible"
    assert by_id["sst2-freeze"].band is not None
    assert judge_band(by_id["sst2-freeze"].band)[0] == ""
    assert "in its band" in judge_band(by_id["sst2-freeze"].band)[1]


@pytest.mark.parametrize("model", ["google-bert/bert-base-uncased", "gpt-medium-512"])
def test_what_was_counted_is_counted_again(model: str) -> None:
    """By shapes alone; whether weights are kept or made orthogonal changes neither count."""
    config, origin = find_config(model, num_labels=2)
    with torch.device("meta"):
        kind = AutoModelForCausalLM if origin == PRESET else AutoModelForSequenceClassification
        network = kind.from_config(config)
        ids = torch.zeros((2, 128), dtype=torch.long)
        batch = {"input_ids": ids, "labels": ids if origin == PRESET else ids[:, 0]}
    before = count_flops(network, batch).total
    network = create_method(parse_method_use({"orthogonal_qk": {"init": "keep"}}), 0).prepare(network)
    allowed, parameters = before / count_flops(network, batch).total, list(network.parameters())
    frozen, total = sum(p.numel() for p in parameters if not p.requires_grad), sum(p.numel() for p in parameters)
    counted = [claim.counted for _, claim in CLAIMS if claim.counted is not None and claim.counted.model == model]
    assert counted
    for one in counted:
        assert (one.frozen, one.total, one.allowed) == (frozen, total, pytest.approx(allowed, abs=5e-4))


# -- bad input ---------------------------------------------------------------------------------------------------------------


def test_an_unknown_source_or_claim_names_the_nearest() -> None:
    with pytest.raises(FairtuneError, match=r"sources of claims: bpsom, oelm, titles. Did you mean 'oelm'"):
        load_claims("olem")
    with pytest.raises(FairtuneError, match="Did you mean 'oelm/xnli-speed'"):
        load_claims("oelm/xnli-sped")
    assert [claim.id for claim in load_claims("oelm/xnli-speed")["oelm"].claims] == ["xnli-speed"]


def test_a_file_of_claims_that_is_wrong_says_where(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = """
title: t
source: s
claims:
  - id: a
    text: A is better.
    claimed: "1"
    evidence: none
    untried: all
    trials: [{study: s, file: studies/titles.yaml, size: laptop, about: x, claims: [{arm: a, better_than: b, by: 0.5}]}]
"""
    file.write_text(text)
    with pytest.raises(
        FairtuneError,
        match=r"mine.yaml:10: claims.0..trials\[0\].claims\[0\].by: found 0.5; allowed: an amount",
    ):
        read_claims(file)
    file.write_text(text.replace("by: 0.5", "by: 0.5 points").replace("    trials", "    x"))
    with pytest.raises(FairtuneError, match=r"mine.yaml:10: claims\[0\].x: unknown key"):
        read_claims(file)
    file.write_text("title: [")
    with pytest.raises(FairtuneError, match=r"mine.yaml:.*not valid YAML"):
        read_claims(file)
    with pytest.raises(FairtuneError, match="no such claims file"):
        read_claims(tmp_path / "gone.yaml")


def test_shipped_files_are_found_in_a_package_and_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = find_shipped("studies/sst2-oelm.yaml")
    assert checkout is not None
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "mine.yaml").write_text(checkout.read_text())
    monkeypatch.setattr(source, "HOMES", (tmp_path, tmp_path / "nowhere"))
    assert find_shipped("studies/mine.yaml") == tmp_path / "studies" / "mine.yaml"
    assert find_shipped("studies/sst2-oelm.yaml") is None
    assert find_shipped("../studies/mine.yaml") is None
    assert find_shipped("studies/..") is None
    monkeypatch.chdir(tmp_path / "studies")
    assert load_study("studies/mine.yaml").study == "sst2-oelm", "so that commands on the page work anywhere"
