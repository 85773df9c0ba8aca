"""Serve a run to OpenRefine and other clients by the Reconciliation Service API 0.2, and at `/align` in plain JSON.

    GET, POST /              manifest; `queries` and `extend` as form or query fields
    GET /suggest/entity|type|property?prefix=&cursor=        GET /flyout/entity?id=
    GET /properties?type=    GET /preview?id=    GET /view?id=
    GET /align?entity=&side=                     POST /align {"entities": [...], "side": ...}
The service writes no files. Pages of this machine may read its answers; pages of other machines may not, neither by
CORS nor as a script (`callback=`, JSONP, which older versions of OpenRefine use).
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

_MAX_BYTES = 4 * 1024 * 1024
_POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"
)
_SUGGESTED_ENTITIES = 10
_SUGGESTED_OTHERS = 20  # types or properties
_MAX_SUGGESTED = 200
_MAX_PROPERTIES = 200
_MAX_SHOWN_PROPERTIES, _MAX_SHOWN_VALUES = 8, 3  # of the description of an entity
_CALLBACK = re.compile(r"[A-Za-z_$][\w$.]{0,99}", re.ASCII)
Explain = Callable[[str, str | None], dict[str, Any]]


def reconciliation_application(
    reconciler: Reconciler, title: str, explain: Explain, *, hosts: tuple[str, ...]
) -> FastAPI:
    """Make the application; `explain` gives the answer of `/align` for the name and the side of an entity."""
    app = guarded_application(hosts=hosts, max_bytes=_MAX_BYTES, policy=_POLICY, loopback_may_read=True)
    catalogue = reconciler.catalogue

    @app.get("/")
    async def get_service(request: Request) -> Response:
        values = dict(request.query_params)
        return _json(request, await run_in_threadpool(_answer, reconciler, title, _own_address(request), values))

    @app.post("/")
    async def post_service(request: Request) -> JSONResponse:
        values = await read_form(request)
        return JSONResponse(await run_in_threadpool(_answer, reconciler, title, _own_address(request), values))

    @app.get("/suggest/{kind}")
    def suggest(request: Request, kind: str, prefix: str = "", cursor: int = 0) -> Response:
        return _json(request, {"result": _suggest(catalogue, kind, prefix, max(0, cursor))})

    @app.get("/flyout/entity")
    def flyout(request: Request, id: str) -> Response:  # noqa: A002 - a name of the protocol
        return _json(request, {"id": id, "html": _brief_html(catalogue, id, "flyout.html")})

    @app.get("/properties")
    def properties(request: Request, type: str = "", limit: int = 20) -> Response:  # noqa: A002 - as above
        shown = catalogue.all_properties[: max(1, min(limit, _MAX_PROPERTIES))]
        return _json(request, {"limit": limit, "type": type, "properties": shown})

    @app.get("/preview")
    @app.get("/view")
    def preview(id: str) -> HTMLResponse:  # noqa: A002 - a name of the protocol
        return HTMLResponse(_brief_html(catalogue, id, "preview.html"))

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
    """Answer a request at the root: reconciliation queries, a data extension, or the manifest."""
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
        "help_text": "Maximum number of values in a row (0: all).",
    }
    return {
        "versions": ["0.2"],
        "name": f"{title} ({('source', 'target')[catalogue.side]} entities)",
        "identifierSpace": _namespace(catalogue),
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


def _namespace(catalogue: Catalogue) -> str:
    """The namespace of the identifiers: the first identifier of the side without its last part."""
    task = catalogue.labels.task
    entity = task.num_source_entities if catalogue.side else 0
    first = catalogue.labels.iri(entity) if entity < task.num_entities else ""
    return first[: len(first) - len(local_part(first))] if "://" in first else "urn:largegnn:"


def _suggest(catalogue: Catalogue, kind: str, prefix: str, first: int = 0) -> list[dict[str, str]]:
    """Suggest entities, types or properties for the beginning of a name, from number `first` on."""
    if kind == "entity":
        exact = catalogue.find(prefix, catalogue.side)
        completed = catalogue.names.begin_with(prefix, _MAX_SUGGESTED)
        entities = list(dict.fromkeys([*exact, *filter(catalogue.is_candidate, completed)]))
        shown = entities[first : first + _SUGGESTED_ENTITIES]
        return [catalogue.described(entity) | {"description": catalogue.labels.iri(entity)} for entity in shown]
    known = {"type": catalogue.all_types, "property": catalogue.all_properties}.get(kind)
    if known is None:
        raise InputError(f"unknown kind of suggestions {kind[:40]!r}", expected="entity, type, property")
    wanted = prefix.casefold()
    matching = [entry for entry in known if wanted in entry["name"].casefold() or entry["id"] == prefix]
    return matching[first : first + _SUGGESTED_OTHERS]


def _brief_html(catalogue: Catalogue, name: str, template: str) -> str:
    """Describe an entity in brief by a template: a page, or a part of a page."""
    entities = catalogue.find(name, catalogue.side)
    if not entities:
        raise InputError("the entity is not known", found=name[:200])
    entity = entities[0]
    values_by_predicate = values_of(catalogue.labels.literals, entity, for_page=True)
    values = {local_part(key): values[:_MAX_SHOWN_VALUES] for key, values in values_by_predicate.items()}
    shown = dict(list(values.items())[:_MAX_SHOWN_PROPERTIES])
    return render(template, entity=catalogue.described(entity), types=catalogue.types(entity), values=shown)


def _json(request: Request, value: dict[str, Any]) -> Response:
    """Answer with JSON, or, for pages of this machine only, with a call of the function `callback`."""
    name = request.query_params.get("callback")
    if name is None:
        return JSONResponse(value)
    if not _CALLBACK.fullmatch(name):
        raise InputError("callback must be the name of a function", found=name[:80])
    if _is_from_another_machine(request):
        return PlainTextResponse("scripts of other machines may not read this answer\n", 403)
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return Response(f"/**/{name}({text});", media_type="text/javascript")


def _is_from_another_machine(request: Request) -> bool:
    """Whether a page of another machine sent the request, by its `Referer` or else by `Sec-Fetch-Site`."""
    referer = request.headers.get("referer")
    if referer:
        return not is_loopback(urlsplit(referer).hostname or "")
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site")


def _align_many(body: bytes, explain: Explain) -> dict[str, Any]:
    query = read_align(body)
    results = []
    for name in query.entities:
        try:
            results.append(explain(name, query.side))
        except InputError as error:
            results.append({"entity": name, "error": error.problem})
    return {"results": results}


def _own_address(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}"
