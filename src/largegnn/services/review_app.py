"""Serve the review page: the whole page, and fragments of it that htmx inserts in the browser.

    GET  /             the page                      GET  /worklist   a part of the filtered list
    GET  /pair/ROW     a pair                        POST /decide     save a decision, show the next pair
    POST /undo         undo the last decision        GET  /export/... decisions as TSV or SSSOM
`services.guard` checks the access. A decision is on disk before the answer is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from largegnn.artifacts import IntArray
from largegnn.errors import InputError
from largegnn.export.info import ExportInfo
from largegnn.review.decisions import decisions_sssom, decisions_tsv
from largegnn.review.session import ReviewSession
from largegnn.review.templating import asset, render
from largegnn.review.worklist import ORDERS, STATES, Filters
from largegnn.services.guard import guarded_application, read_form

__all__ = ["review_application"]

_PAIRS_PER_PAGE = 40
_MAX_BYTES = 64 * 1024
_STATIC = {
    "style.css": "text/css",
    "review.css": "text/css",
    "review.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}


def review_application(
    session: ReviewSession, info: ExportInfo, *, token: str, hosts: tuple[str, ...], reviewer: str = ""
) -> FastAPI:
    """Make the application for a session; `reviewer` is the name that the page suggests."""
    app = guarded_application(hosts=hosts, max_bytes=_MAX_BYTES, token=token)

    @app.get("/")
    def page() -> HTMLResponse:
        return HTMLResponse(_page_html(session, info, reviewer))

    @app.get("/worklist")
    def worklist(request: Request) -> HTMLResponse:
        values = request.query_params
        return HTMLResponse(_worklist_html(session, filters_of(values), _integer(values, "page", 1)))

    @app.get("/pair/{row}")
    def pair(row: int) -> HTMLResponse:
        return HTMLResponse(_pair_html(session, row))

    @app.post("/decide")
    async def decide(request: Request) -> HTMLResponse:
        return await run_in_threadpool(_decide, session, await read_form(request))

    @app.post("/undo")
    async def undo(request: Request) -> HTMLResponse:
        return await run_in_threadpool(_undo, session, await read_form(request))

    @app.get("/export/decisions.tsv")
    def export_tsv() -> Response:
        return _download(decisions_tsv(session.log.decisions()), "decisions.tsv")

    @app.get("/export/decisions.sssom.tsv")
    def export_sssom() -> Response:
        return _download(decisions_sssom(session.log.decisions(), info), "decisions.sssom.tsv")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            return PlainTextResponse("this file does not exist\n", 404)
        return Response(asset(name), media_type=_STATIC[name])

    return app


def filters_of(values: Mapping[str, str]) -> Filters:
    """Read the filters of a form; invalid values are ignored."""
    filters = Filters(
        query=values.get("query", "")[:200],
        low=_share(values, "low", 0.0),
        high=_share(values, "high", 1.0),
        min_degree=_integer(values, "min_degree", 0),
        max_degree=_integer(values, "max_degree", 0),
        contradiction=values.get("contradiction") == "1",
        audit=values.get("audit") == "1",
    )
    state, order, decided = (values.get(name, "") for name in ("state", "order", "decided"))
    filters = replace(filters, state=state) if state in STATES else filters
    filters = replace(filters, order=order) if order in ORDERS else filters
    return replace(filters, decided=decided) if decided in ("open", "done", "all") else filters


def _page_html(session: ReviewSession, info: ExportInfo, reviewer: str) -> str:
    rows = session.find(Filters())
    return render(
        "review.html",
        title=info.title,
        reviewer=reviewer,
        states=STATES,
        orders=ORDERS,
        has_contradictions=session.worklist.has_contradictions,
        worklist=_list_values(session, Filters(), 1),
        pair=_pair_values(session, int(rows[0])) if len(rows) else None,
        progress=session.progress(),
        measure=session.measure,
        columns=session.alignment.columns,
    )


def _worklist_html(session: ReviewSession, filters: Filters, page: int) -> str:
    return render("worklist.html", worklist=_list_values(session, filters, page), measure=session.measure)


def _list_values(session: ReviewSession, filters: Filters, page: int) -> dict[str, Any]:
    rows = session.find(filters)
    shown = rows[(page - 1) * _PAIRS_PER_PAGE : page * _PAIRS_PER_PAGE].tolist()
    items = []
    for row in shown:
        source, target = session.labels(row)
        verdict = session.verdict(row)
        confidence = float(session.alignment.confidence[row])
        items.append((row, source, target, confidence, "" if verdict is None else verdict.decision))
    return {"items": items, "total": len(rows), "page": page, "has_more": page * _PAIRS_PER_PAGE < len(rows)}


def _pair_html(session: ReviewSession, row: int, message: str = "") -> str:
    values = _pair_values(session, row)
    progress = session.progress()
    return render("pair.html", pair=values, progress=progress, measure=session.measure, message=message, swap=True)


def _pair_values(session: ReviewSession, row: int) -> dict[str, Any]:
    view = session.view(row)
    others = [(number, session.view(other)) for number, other in enumerate(session.candidates(row), start=1)]
    return {"view": view, "verdict": session.verdict(row), "others": others}


def _decide(session: ReviewSession, values: Mapping[str, str]) -> HTMLResponse:
    row = _integer(values, "row", -1)
    filters = filters_of(values)
    reviewer = values.get("reviewer", "").strip()
    if not reviewer:
        raise InputError("your name is missing", fix="enter your name in the field Reviewer")
    before = session.find(filters)
    instead = _integer(values, "instead", -1) if "instead" in values else None
    session.decide(row, values.get("decision", ""), reviewer, instead)
    following = _next(before, row, instead)
    if following is None:
        return _changed(_pair_html(session, row, "Saved. The list has no other pair."))
    return _changed(_pair_html(session, following, "Saved."))


def _next(rows: IntArray, row: int, instead: int | None) -> int | None:
    """The row after `row` in a list (n,), which starts again at its end; None where the list has no other row."""
    index = np.flatnonzero(rows == row)[:1]
    first = int(index[0]) + 1 if len(index) else 0
    for part in (rows[first:], rows[:first]):
        # The action decided at most two pairs, `row` and `instead`, so one of three rows is another pair.
        following: int | None = next((other for other in part[:3].tolist() if other not in (row, instead)), None)
        if following is not None:
            return following
    return None


def _undo(session: ReviewSession, values: Mapping[str, str]) -> HTMLResponse:
    row = session.undo(values.get("reviewer", ""))
    if row is None:
        raise InputError("you have no decision to undo")
    return _changed(_pair_html(session, row, "Undone."))


def _changed(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers={"HX-Trigger": "decided"})


def _download(text: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/tab-separated-values; charset=utf-8", headers=headers)


def _integer(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else default


def _share(values: Mapping[str, str], name: str, default: float) -> float:
    try:
        return min(1.0, max(0.0, float(values.get(name) or default)))
    except ValueError:
        return default
