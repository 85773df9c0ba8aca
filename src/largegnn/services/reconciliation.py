"""Serve a run for reconciliation: the Reconciliation Service API 0.2, and `/align` in plain JSON.

    GET, POST /              manifest; `queries` and `extend` as form or query fields
    GET /suggest/entity|type|property?prefix=&cursor=        GET /flyout/entity?id=
    GET /properties?type=    GET /preview?id=    GET /view?id=
    GET /align?entity=&side=                     POST /align {"entities": [...], "side": ...}
Nothing is written. Pages of this machine may read answers, pages of other machines may not: neither by CORS nor as a
script (`callback=`, JSONP, which older versions of OpenRefine use).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from largegnn.errors import InputError
from largegnn.review.labels import local_part
from largegnn.review.templating import asset, render
from largegnn.review.values import values_of
from largegnn.services.catalogue import Catalogue
from largegnn.services.guard import guarded_application, is_loopback, read_form
from largegnn.services.queries import read_align, read_extend, read_queries
from largegnn.services.reconciler import Reconciler
from largegnn.version import __version__

__all__ = ["reconciliation_application"]

_MOST_BYTES = 4 * 1024 * 1024
_POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"
)
_SUGGESTED, _MOST_SUGGESTED = 10, 200
_CALLBACK = re.compile(r"[A-Za-z_$][\w$.]{0,99}", re.ASCII)
Explain = Callable[[str, str | None], dict[str, Any]]


def reconciliation_application(
    reconciler: Reconciler, title: str, explain: Explain, *, hosts: tuple[str, ...]
) -> FastAPI:
    """The application; `explain` gives the answer of `/align` for an entity by its name and side."""
    app = guarded_application(hosts=hosts, most_bytes=_MOST_BYTES, policy=_POLICY, loopback_may_read=True)
    catalogue = reconciler.catalogue

    @app.get("/")
    async def get_service(request: Request) -> Response:
        values = dict(request.query_params)
        return _json(request, await run_in_threadpool(_answer, reconciler, title, _base(request), values))

    @app.post("/")
    async def post_service(request: Request) -> JSONResponse:
        values = await read_form(request)
        return JSONResponse(await run_in_threadpool(_answer, reconciler, title, _base(request), values))

    @app.get("/suggest/{kind}")
    def suggest(request: Request, kind: str, prefix: str = "", cursor: int = 0) -> Response:
        return _json(request, {"result": _suggest(catalogue, kind, prefix, max(0, cursor))})

    @app.get("/flyout/entity")
    def flyout(request: Request, id: str) -> Response:  # noqa: A002 - the protocol calls it so
        return _json(request, {"id": id, "html": _about(catalogue, id, "flyout.html")})

    @app.get("/properties")
    def properties(request: Request, type: str = "", limit: int = 20) -> Response:  # noqa: A002 - as above
        found = catalogue.all_properties[: max(1, min(limit, 200))]
        return _json(request, {"limit": limit, "type": type, "properties": found})

    @app.get("/preview")
    @app.get("/view")
    def preview(id: str) -> HTMLResponse:  # noqa: A002 - the protocol calls it so
        return HTMLResponse(_about(catalogue, id, "preview.html"))

    @app.get("/static/style.css")
    def style() -> Response:
        return Response(asset("style.css"), media_type="text/css")

    @app.get("/align")
    def align(entity: str, side: str | None = None) -> JSONResponse:
        return JSONResponse(explain(entity, side))

    @app.post("/align")
    async def align_many(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(_align_many, await request.body(), explain))

    @app.exception_handler(404)
    def missing(request: Request, error: Exception) -> PlainTextResponse:
        return PlainTextResponse("this address does not exist\n", 404)

    return app


def _answer(reconciler: Reconciler, title: str, base: str, values: Mapping[str, str]) -> dict[str, Any]:
    """The answer at the address of the service itself."""
    if "queries" in values:
        queries = read_queries(values["queries"])
        return {key: {"result": reconciler.answer(query)} for key, query in queries.items()}
    if "extend" in values:
        return reconciler.extend(read_extend(values["extend"]))
    return _manifest(reconciler.catalogue, title, base)


def _manifest(catalogue: Catalogue, title: str, base: str) -> dict[str, Any]:
    suggest = {
        kind: {"service_url": base, "service_path": f"/suggest/{kind}"} for kind in ("entity", "type", "property")
    }
    suggest["entity"] |= {"flyout_service_url": base, "flyout_service_path": "/flyout/entity?id=${id}"}
    limit = {
        "name": "limit",
        "label": "Limit",
        "type": "number",
        "default": 0,
        "help_text": "Most values of a row (0: all).",
    }
    return {
        "versions": ["0.2"],
        "name": f"{title} ({('source', 'target')[catalogue.side]} entities)",
        "identifierSpace": _space(catalogue),
        "schemaSpace": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "serviceVersion": __version__,
        "defaultTypes": catalogue.all_types,
        "view": {"url": f"{base}/view?id={{{{id}}}}"},
        "preview": {"url": f"{base}/preview?id={{{{id}}}}", "width": 430, "height": 300},
        "suggest": suggest,
        "extend": {
            "propose_properties": {"service_url": base, "service_path": "/properties"},
            "property_settings": [limit],
        },
    }


def _space(catalogue: Catalogue) -> str:
    """The common beginning of the identifiers: the first one without its last part."""
    task = catalogue.labels.task
    number = catalogue.labels.task.num_source_entities if catalogue.side else 0
    first = catalogue.labels.iri(number) if number < task.num_entities else ""
    return first[: len(first) - len(local_part(first))] if "://" in first else "urn:largegnn:"


def _suggest(catalogue: Catalogue, kind: str, prefix: str, first: int = 0) -> list[dict[str, str]]:
    """The suggestions for a beginning, from number `first` on."""
    if kind == "entity":
        exact = catalogue.find(prefix, catalogue.side)
        begun = catalogue.names.begin_with(prefix, _MOST_SUGGESTED)
        entities = list(dict.fromkeys([*exact, *(one for one in begun if catalogue.is_candidate(one))]))
        shown = entities[first : first + _SUGGESTED]
        return [catalogue.described(one) | {"description": catalogue.labels.iri(one)} for one in shown]
    known = {"type": catalogue.all_types, "property": catalogue.all_properties}.get(kind)
    if known is None:
        raise InputError(f"unknown kind of suggestions {kind[:40]!r}", expected="entity, type, property")
    wanted = prefix.casefold()
    found = [one for one in known if wanted in one["name"].casefold() or one["id"] == prefix]
    return found[first : first + 2 * _SUGGESTED]


def _about(catalogue: Catalogue, name: str, template: str) -> str:
    """An entity in brief: as a page, or as a part of one."""
    known = catalogue.find(name, catalogue.side)
    if not known:
        raise InputError("the entity is not known", found=name[:200])
    entity = known[0]
    values = {
        local_part(key): found[:3] for key, found in values_of(catalogue.labels.literals, entity, for_page=True).items()
    }
    about = catalogue.described(entity)
    return render(template, entity=about, types=catalogue.types(entity), values=dict(list(values.items())[:8]))


def _json(request: Request, value: dict[str, Any]) -> Response:
    """An answer as JSON, or as a call of the function `callback`, for pages of this machine alone."""
    name = request.query_params.get("callback")
    if name is None:
        return JSONResponse(value)
    if not _CALLBACK.fullmatch(name):
        raise InputError("callback must be the name of a function", found=name[:80])
    if _is_from_another_machine(request):
        return PlainTextResponse("scripts of other machines may not read this\n", 403)
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return Response(f"/**/{name}({text});", media_type="text/javascript")


def _is_from_another_machine(request: Request) -> bool:
    """Whether the request is from a page of another machine, by its address or else by the browser's headers."""
    referer = request.headers.get("referer")
    if referer:
        return not is_loopback(urlsplit(referer).hostname or "")
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site")


def _align_many(body: bytes, explain: Explain) -> dict[str, Any]:
    given = read_align(body)
    found = []
    for one in given.entities:
        try:
            found.append(explain(one, given.side))
        except InputError as error:
            found.append({"entity": one, "error": error.problem})
    return {"results": found}


def _base(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}"
