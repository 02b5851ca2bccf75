"""The dashboard's server on a real ledger, asked over the network as a page, a script and somebody with bad intentions would."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.made_maps import record_maps
from tests.monitor.dash_server import HOST, RunningDash, running_dash
from tests.report.made_ledger import STUDY, ArmSpec, make_study, usual_ledger

from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.monitor.dash.guard import COOKIE, Guard
from fairtune.monitor.dash.server import address, serve_dashboard

SECRET = "what nobody outside may read"
TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a report, secrets beside it, and links that lead out of it."""
    found = tmp_path_factory.mktemp("dash") / "runs"
    usual_ledger(found).results()
    (found / STUDY / "report").mkdir()
    (found / STUDY / "report" / "index.html").write_text("<!DOCTYPE html><p>what was found</p>")
    (found / STUDY / "report" / "report.json").write_text("{}")
    (found.parent / "secret.json").write_text(SECRET)
    (found / STUDY / "report" / "out.json").symlink_to(found.parent / "secret.json")
    (found / STUDY / "report" / "up").symlink_to(found.parent)
    (found / STUDY / "report" / "notes.txt").write_text(SECRET)
    (found / STUDY / "logs").mkdir(exist_ok=True)
    (found / STUDY / "logs" / "worker-cpu.log").write_text("a bar\r100 %\nnext\x1b[31m line\n")
    return found


@pytest.fixture(scope="module")
def dash(runs: Path) -> Iterator[RunningDash]:
    with running_dash(runs) as found:
        yield found


def data(dash: RunningDash, path: str) -> Any:
    answer = dash.get(path)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("application/json")
    return json.loads(answer.body)


def messages(dash: RunningDash, path: str, most: int, seconds: float = 20.0) -> Iterator[dict[str, Any]]:
    """What a page is told, as it comes."""
    connection = http.client.HTTPConnection(HOST, dash.port, timeout=seconds)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    try:
        while most:
            line = answer.fp.readline().decode()
            if line.startswith("data: {") and line != "data: {}\n":
                most -= 1
                yield json.loads(line.removeprefix("data: "))
    finally:
        connection.close()


def test_a_page_shows_the_study_without_its_script(dash: RunningDash) -> None:
    assert f'href="/study/{STUDY}"' in dash.get("/").body
    page = dash.get(f"/study/{STUDY}")
    assert page.status == 200
    assert "oelm-freeze" in page.body
    assert "style=" not in page.body
    assert "<script>" not in page.body
    assert dash.get("/static/dash.js").headers["content-type"].startswith("text/javascript")


def test_data_is_the_ledgers(dash: RunningDash) -> None:
    found = data(dash, f"/study/{STUDY}/view.json")
    view = found["view"]
    assert view["counts"] == {"finished": 11, "failed": 1, "waiting": 3}
    assert view["state"] == "stopped"
    assert view["verdict"]["peeking"] == "peeking: 0 of 3 seeds", "one arm has not begun, so no seed is whole"
    assert [arm["arm"] for arm in view["arms"]] == ["baseline", "baseline-fast", "oelm-freeze", "focal", "later"]
    failed = next(run for run in view["runs"] if run["state"] == "failed")
    assert failed["reason"] == "the loss is nan at step 3 of 20"
    assert view["log"] == [["cpu", "100 %"], ["cpu", "next\\x1b[31m line"]]
    assert data(dash, f"/study/{STUDY}/log/cpu.json") == {"lines": ["100 %", "next\\x1b[31m line"]}
    assert data(dash, f"/study/{STUDY}/runs.json?state=failed")["total"] == 1
    assert data(dash, f"/study/{STUDY}/runs.json?from=12")["runs"][0]["position"] == 12
    one = data(dash, f"/study/{STUDY}/run/oelm-freeze/1.json")
    assert one["run"]["score"] == pytest.approx(262 / 400)
    assert data(dash, f"/study/{STUDY}/maps.json") == {"maps": []}


def test_the_verdict_is_the_reports_and_says_that_it_peeks(dash: RunningDash, runs: Path) -> None:
    from fairtune.analysis.results import load_results

    until = time.monotonic() + 30
    while not (verdict := data(dash, f"/study/{STUDY}/view.json")["view"])["verdict"]["opening"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    results = load_results(runs, STUDY)
    assert verdict["verdict"]["opening"] == results.verdict().opening
    assert "not counted" in verdict["verdict"]["note"]
    arm = next(arm for arm in verdict["arms"] if arm["arm"] == "oelm-freeze")
    compared = results.comparison("oelm-freeze")
    assert compared is not None
    assert (arm["difference_low"], arm["difference_high"]) == pytest.approx(compared.family)
    assert (arm["against"], arm["pairs"], arm["counted"]) == ("baseline-fast", 3, 3)


def test_reports_are_served_and_can_do_no_more_than_show_themselves(dash: RunningDash) -> None:
    links = dict(data(dash, f"/study/{STUDY}/view.json")["reports"])
    assert set(links) == {"index.html", "report.json"}
    answer = dash.get(links["index.html"])
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]


@pytest.mark.parametrize(
    "path",
    [
        "/study/{s}/report/out.json", "/study/{s}/report/up/secret.json", "/study/{s}/report/notes.txt",
        "/study/{s}/report/../study.json", "/study/{s}/report/%2e%2e/study.json", "/study/{s}/report/..%2fstudy.json",
        "/study/{s}/report/%2e%2e%2f%2e%2e%2f%2e%2e%2fsecret.json", "/study/{s}/report//etc/passwd",
        "/study/{s}/report/%2fetc%2fpasswd", "/study/{s}/report/..\\..\\secret.json", "/study/{s}/report/x%00.json",
        "/study/{s}/report/index.html/", "/study/../secret.json", "/study/..", "/study/%2e%2e/view.json", "/study/./view.json",
        "/study//etc/view.json", "/study/{s}%00/view.json", "/study/{s}/../{s}/view.json", "/static/../guard.py",
        "/static/%2e%2e%2fguard.py", "/static/..%5cguard.py", "/study/{s}/log/..%2f..%2fstudy.json", "/study/{s}/log/%2e%2e.json",
        "/study/{s}/run/..%2f..%2f{s}%2fbaseline/0.json", "/study/{s}/run/../0.json", "/study/{s}/run/baseline/-1.json",
        "/study/{s}/run/baseline/99999999999999999999999.json", "/study/{s}/run/%2e%2e/0.json", "/study/{s}/map/%2e%2e/0/map.png",
        "/study/{s}/map/baseline/0/..%2fx.png", "/{s}/study.json", "/index.sqlite", "/runs/index.sqlite", "/study/nobody",
    ],
)  # fmt: skip
def test_nothing_outside_is_reached(dash: RunningDash, path: str) -> None:
    for agent in ("text/html", "*/*"):
        answer = dash.get(path.format(s=STUDY), accept=agent)
        assert answer.status in (400, 404), answer.body
        assert SECRET not in answer.body
        assert "Traceback" not in answer.body
        assert "root:" not in answer.body


def test_bad_questions_are_answered_in_a_sentence(dash: RunningDash) -> None:
    assert dash.get(f"/study/{STUDY}/runs.json?from=x").status == 400
    assert dash.get(f"/study/{STUDY}/runs.json?from=-5&arm=%00&state=<script>").status == 200
    hostile = dash.get("/study/" + quote("<img src=x onerror=alert(1)>"), accept="text/html")
    assert hostile.status == 404
    assert "<img src=x" not in hostile.body
    assert dash.get(f"/study/{STUDY}", "POST").status == 405
    assert dash.get("/", Host="evil.example").status == 421


def test_a_page_is_told_what_changes_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtune.monitor.dash.feed.EVERY", 0.1)
    monkeypatch.setattr("fairtune.monitor.dash.feed.SHARE", 0.5)
    runs = tmp_path / "runs"
    made = usual_ledger(runs)
    made.results()
    with running_dash(runs) as dash:
        told = messages(dash, f"/study/{STUDY}/feed", 50)
        first = next(told)
        assert {"arms", "runs", "curves", "verdict", "reports", "devices"} <= first.keys()
        (runs / STUDY / "logs").mkdir()
        (runs / STUDY / "logs" / "worker-cpu.log").write_text("hello\n")
        changed = next(message for message in told if "log" in message)
        assert changed["log"] == [["cpu", "hello"]]
        assert "about" not in changed
        shutil.rmtree(runs / STUDY)
        gone = next(message for message in told if message.get("state") == "unreadable")
        assert "is gone" in gone["problem"]
        assert dash.get(f"/study/{STUDY}/view.json").status == 404
        shutil.rmtree(runs)
        until = time.monotonic() + 20
        while (lost := dash.get("/studies.json")).status == 200 and time.monotonic() < until:
            time.sleep(0.1)
        assert "cannot be read" in lost.body


@pytest.mark.slow  # it draws, in a thread of the server's
def test_maps_are_drawn_as_they_form(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    bpsom = [{"bpsom": {}}]
    made = make_study(runs, {"baseline": ArmSpec([336]), "mapped": ArmSpec([None], methods=bpsom)})
    run = next(run for run in json.loads((runs / STUDY / "study.json").read_text())["runs"] if run["arm"] == "mapped")
    folder = made.folder("mapped", 0)
    folder.begin({"key": run["key"]})
    record_maps(folder, passes=1)
    with running_dash(runs) as dash:
        (first,) = data(dash, f"/study/{STUDY}/maps.json")["maps"]
        assert (first["arm"], first["seed"], first["when"]) == ("mapped", 0, "step 5")
        picture = dash.get(f"/study/{STUDY}/map/mapped/0/{first['layer']}.png")
        assert (picture.status, picture.headers["content-type"]) == (200, "image/png")
        record_maps(folder, passes=3)
        latest, history = data(dash, f"/study/{STUDY}/maps.json")["maps"]
        assert (latest["when"], history["when"]) == ("step 15", "3 labelling passes")
        assert latest["version"] != first["version"]
        assert dash.get(f"/study/{STUDY}/map/mapped/0/nothing.png").status == 404
        assert dash.get(f"/study/{STUDY}/map/baseline/0/map.png").status == 404


def test_a_token_opens_the_server_and_nothing_less(runs: Path) -> None:
    with running_dash(runs, Guard.of("0.0.0.0", TOKEN)) as dash:
        for path in (
            "/",
            "/studies.json",
            f"/study/{STUDY}/feed",
            "/static/dash.js",
            f"/study/{STUDY}/report/index.html",
        ):
            assert dash.get(path).status == 401
        opened = dash.get(f"/?token={TOKEN}")
        cookie = opened.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith(COOKIE)
        assert dash.get("/studies.json", Cookie=cookie).status == 200


def test_what_cannot_be_served_is_told_before_anything_listens(tmp_path: Path, runs: Path) -> None:
    with pytest.raises(LedgerError, match="there is no runs folder"):
        serve_dashboard(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be read"):
        serve_dashboard(tmp_path / "file")
    with pytest.raises(LedgerError, match="no study 'other'"):
        serve_dashboard(runs, "other")
    with pytest.raises(FairtuneError, match="--host 203"):
        serve_dashboard(runs, host="203.0.113.7", token=TOKEN)
    with socket.create_server((HOST, 0)) as taken, pytest.raises(FairtuneError, match="in use already"):
        serve_dashboard(runs, port=taken.getsockname()[1])
    assert address("::1", 5, "a/b", TOKEN) == f"http://[::1]:5/study/a%2Fb?token={TOKEN}"
