"""Serve the review page: the page and fragments of it, all made here; htmx puts the fragments in place.

    GET  /             the page                      GET  /worklist   a part of the list, by the filters
    GET  /pair/ROW     one pair                      POST /decide     save a decision, show the next pair
    POST /undo         undo the last decision        GET  /export/... decisions as TSV or SSSOM
Access is checked by the guard. A decision is on disk before its answer is sent.
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

_PER_PAGE = 40
_MOST_BYTES = 64 * 1024
_STATIC = {
    "style.css": "text/css",
    "review.css": "text/css",
    "review.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}


def review_application(
    session: ReviewSession, info: ExportInfo, *, token: str, hosts: tuple[str, ...], reviewer: str = ""
) -> FastAPI:
    """The application over a session; `reviewer` is the name the page suggests."""
    app = guarded_application(hosts=hosts, most_bytes=_MOST_BYTES, token=token)

    @app.get("/")
    def page() -> HTMLResponse:
        return HTMLResponse(_page(session, info, reviewer))

    @app.get("/worklist")
    def worklist(request: Request) -> HTMLResponse:
        values = request.query_params
        return HTMLResponse(_worklist(session, filters_of(values), _number(values, "page", 1)))

    @app.get("/pair/{row}")
    def pair(row: int) -> HTMLResponse:
        return HTMLResponse(_pair(session, row))

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
    """The filters of a form; invalid values are ignored."""
    given = Filters(
        query=values.get("query", "")[:200],
        low=_share(values, "low", 0.0),
        high=_share(values, "high", 1.0),
        least_degree=_number(values, "least_degree", 0),
        most_degree=_number(values, "most_degree", 0),
        contradiction=values.get("contradiction") == "1",
        audit=values.get("audit") == "1",
    )
    state, order, decided = (values.get(name, "") for name in ("state", "order", "decided"))
    given = replace(given, state=state) if state in STATES else given
    given = replace(given, order=order) if order in ORDERS else given
    return replace(given, decided=decided) if decided in ("open", "done", "all") else given


def _page(session: ReviewSession, info: ExportInfo, reviewer: str) -> str:
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


def _worklist(session: ReviewSession, filters: Filters, page: int) -> str:
    return render("worklist.html", worklist=_list_values(session, filters, page), measure=session.measure)


def _list_values(session: ReviewSession, filters: Filters, page: int) -> dict[str, Any]:
    rows = session.find(filters)
    shown = rows[(page - 1) * _PER_PAGE : page * _PER_PAGE].tolist()
    items = []
    for row in shown:
        source, target = session.labels(row)
        found = session.verdict(row)
        rating = float(session.alignment.confidence[row])
        items.append((row, source, target, rating, "" if found is None else found.decision))
    return {"items": items, "total": len(rows), "page": page, "has_more": page * _PER_PAGE < len(rows)}


def _pair(session: ReviewSession, row: int, message: str = "") -> str:
    values = _pair_values(session, row)
    progress = session.progress()
    return render("pair.html", pair=values, progress=progress, measure=session.measure, message=message, swap=True)


def _pair_values(session: ReviewSession, row: int) -> dict[str, Any]:
    view = session.view(row)
    others = [(place, session.view(other)) for place, other in enumerate(session.candidates(row), start=1)]
    return {"view": view, "verdict": session.verdict(row), "others": others}


def _decide(session: ReviewSession, values: Mapping[str, str]) -> HTMLResponse:
    row, filters = _number(values, "row", -1), filters_of(values)
    reviewer = values.get("reviewer", "").strip()
    if not reviewer:
        raise InputError("your name is missing", fix="enter it in the field Reviewer")
    before = session.find(filters)
    instead = _number(values, "instead", -1) if "instead" in values else None
    session.decide(row, values.get("decision", ""), reviewer, instead)
    following = _next(before, row, instead)
    if following is None:
        return _changed(_pair(session, row, "Saved. The list has no other pair."))
    return _changed(_pair(session, following, "Saved."))


def _next(rows: IntArray, row: int, instead: int | None) -> int | None:
    """The next row of a list (n,), the first one after the last; None where the list has no other."""
    at = np.flatnonzero(rows == row)[:1]
    first = int(at[0]) + 1 if len(at) else 0
    for part in (rows[first:], rows[:first]):
        # Of the next pairs, only these two are decided by now.
        following: int | None = next((one for one in part[:3].tolist() if one not in (row, instead)), None)
        if following is not None:
            return following
    return None


def _undo(session: ReviewSession, values: Mapping[str, str]) -> HTMLResponse:
    row = session.undo(values.get("reviewer", ""))
    if row is None:
        raise InputError("you have no decision to undo")
    return _changed(_pair(session, row, "Undone."))


def _changed(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers={"HX-Trigger": "decided"})


def _download(text: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/tab-separated-values; charset=utf-8", headers=headers)


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else default


def _share(values: Mapping[str, str], name: str, default: float) -> float:
    try:
        return min(1.0, max(0.0, float(values.get(name) or default)))
    except ValueError:
        return default
