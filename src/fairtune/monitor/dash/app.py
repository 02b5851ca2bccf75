"""The dashboard's addresses: pages, the data behind them, and the line that keeps them up to date. It only reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.monitor.dash.feed import Feed, dump, studies_row, view_parts
from fairtune.monitor.dash.guard import Guard, GuardedApp
from fairtune.monitor.dash.map_pictures import MapPictures
from fairtune.monitor.dash.pages import make_formats, render_problem, render_studies, render_study
from fairtune.monitor.dash.report_files import TYPES, report_file, report_policy
from fairtune.monitor.dash.run_facts import read_run_facts
from fairtune.monitor.log_lines import log_tail, workers_with_logs
from fairtune.monitor.study_builder import StudyBuilder

STATIC = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
LOG_LINES, PAGE = 200, 100


class Dashboard:
    """Answers requests about one runs folder. What reads the ledger does so in one thread, one question at a time.

    Args:
        study: where the first page leads; None lists all.
    """

    def __init__(self, runs: Path, study: str | None = None) -> None:
        self._runs, self._study = runs, study
        self._builder = StudyBuilder(runs)
        self._maps = MapPictures(runs)
        self.feed: Feed | None = None

    def app(self, guard: Guard) -> ASGIApp:
        """The application, behind its guard."""
        return GuardedApp(self._starlette(), guard)

    def close(self) -> None:
        """Let go of pages that are open, since the server stops."""
        if self.feed is not None:
            self.feed.close()

    def _starlette(self) -> Starlette:
        study = "/study/{study:path}"
        routes = [
            Route("/", self.studies),
            Route("/studies.json", self.studies_json),
            Route("/static/{name}", self.static),
            Route(study + "/view.json", self.view_json),
            Route(study + "/feed", self.listen),
            Route(study + "/runs.json", self.runs_json),
            Route(study + "/run/{arm}/{seed:int}.json", self.run_json),
            Route(study + "/log/{worker}.json", self.log_json),
            Route(study + "/maps.json", self.maps_json),
            Route(study + "/map/{arm}/{seed:int}/{layer}.png", self.map_png),
            Route(study + "/report/{name:path}", self.report),
            Route(study, self.study),
        ]
        return Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={
                HTTPException: self._missing,
                FairtuneError: self._problem,
                OSError: self._broken,  # handled here, or the server would log it as its own
                Exception: self._broken,
            },
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.feed = Feed(self._builder)
        telling = asyncio.create_task(self._begin(self.feed))
        try:
            yield
        finally:
            telling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await telling

    async def _begin(self, feed: Feed) -> None:
        """Read the ledger before the first page asks for it, then keep pages up to date."""
        with contextlib.suppress(LedgerError):  # which every page will be told
            await feed.ask(lambda builder: builder.studies)
        await feed.keep_telling()

    async def studies(self, request: Request) -> Response:
        if self._study is not None and "all" not in request.query_params:
            return RedirectResponse(f"/study/{quote(self._study, safe='')}", 303)
        return HTMLResponse(render_studies(await self._rows(), self._runs.name or str(self._runs)))

    async def studies_json(self, _: Request) -> Response:
        return _json({"studies": await self._rows()})

    async def study(self, request: Request) -> Response:
        name = await self._known(request)
        return HTMLResponse(render_study(await self._ask(lambda builder: builder.view(name))))

    async def view_json(self, request: Request) -> Response:
        name = await self._known(request)
        parts = await self._ask(lambda builder: view_parts(builder, name))
        metric = await self._ask(lambda builder: builder.metric(name))
        curves, reports = parts.pop("curves"), parts.pop("reports")
        view = ",".join(f'"{part}":{text}' for part, text in parts.items())
        body = f'{{"view":{{{view}}},"curves":{curves},"reports":{reports},"formats":{dump(make_formats(metric))}}}'
        return Response(body, media_type="application/json")

    async def listen(self, request: Request) -> Response:
        name = await self._known(request)
        assert self.feed is not None
        if self.feed.is_full:
            return PlainTextResponse("Too many pages are open already; close some.\n", 503)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self.feed.listen(name), media_type="text/event-stream", headers=headers)

    async def runs_json(self, request: Request) -> Response:
        name = await self._known(request)
        asked = request.query_params
        try:
            start = max(0, int(asked.get("from") or 0))
        except ValueError:
            raise HTTPException(400, "from: a whole number is wanted.") from None
        state, arm = asked.get("state", ""), asked.get("arm", "")
        total, found = await self._ask(lambda builder: builder.run_views(name, state, arm, start, PAGE))
        return _json({"total": total, "from": start, "runs": [asdict(run) for run in found]})

    async def run_json(self, request: Request) -> Response:
        name = await self._known(request)
        arm, seed = request.path_params["arm"], request.path_params["seed"]
        found = await self._ask(lambda builder: read_run_facts(builder, name, arm, seed))
        if found is None:
            raise HTTPException(404, "There is no such run in this study.")
        return _json(found)

    async def log_json(self, request: Request) -> Response:
        name = await self._known(request)
        logs = workers_with_logs(self._runs / name / "logs")
        path = logs.get(request.path_params["worker"])
        if path is None:
            raise HTTPException(404, "There is no log of that worker.")
        return _json({"lines": log_tail(path, LOG_LINES)})

    async def maps_json(self, request: Request) -> Response:
        name = await self._known(request)
        return _json({"maps": await self._ask(lambda builder: self._maps.listed(builder, name))})

    async def map_png(self, request: Request) -> Response:
        name = await self._known(request)
        arm, seed, layer = (request.path_params[part] for part in ("arm", "seed", "layer"))
        picture = await self._ask(lambda builder: self._maps.draw(builder, name, arm, seed, layer))
        if picture is None:
            raise HTTPException(404, "There is no such map.")
        return Response(picture, media_type="image/png")

    async def report(self, request: Request) -> Response:
        name = await self._known(request)
        path = report_file(self._runs, name, request.path_params["name"] or "index.html")
        if path is None:
            raise HTTPException(404, "There is no such report; `fairtune report` writes one.")
        headers = {"Content-Security-Policy": report_policy()}
        return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=headers)

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = {path.name: path for path in (files("fairtune.monitor.dash") / "static").iterdir() if path.is_file()}
        kind = STATIC.get(Path(name).suffix)
        if name not in found or kind is None:
            raise HTTPException(404, "There is no such file.")
        return Response(found[name].read_bytes(), media_type=kind)

    async def _known(self, request: Request) -> str:
        """The study that an address names: one of those that are there, so never a path of somebody's making."""
        name = str(request.path_params["study"])
        if name not in await self._ask(lambda builder: builder.studies):
            raise HTTPException(404, f"There is no study '{name[:100]}' in this runs folder.")
        return name

    async def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = await self._ask(
            lambda builder: [studies_row(builder.brief(name)) for name in builder.studies]
        )
        return rows

    async def _ask(self, question: Any) -> Any:
        assert self.feed is not None
        return await self.feed.ask(question)

    async def _missing(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _told(request, str(error.detail), error.status_code)

    async def _problem(self, request: Request, error: Exception) -> Response:
        return _told(request, str(error), 404 if isinstance(error, LedgerError) else 400)

    async def _broken(self, request: Request, error: Exception) -> Response:
        return _told(request, f"This could not be shown ({type(error).__name__}). The runs are not touched by it.", 500)


def _told(request: Request, text: str, status: int) -> Response:
    """A sentence, as a page where a reader asked and as text where the script did."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(render_problem(text), status)
    return PlainTextResponse(text + "\n", status)


def _json(value: Any) -> Response:
    return Response(dump(value), media_type="application/json")
