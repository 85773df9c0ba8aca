"""Test the service against the published schemas and examples, and with an independent client."""

from __future__ import annotations

import json
import os
import re
import tarfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
from fastapi import FastAPI
from starlette.testclient import TestClient

from largegnn.errors import InputError
from largegnn.services.reconciliation import reconciliation_application
from largegnn.services.server import listening
from tests.services.people import BORN, LABEL, reconciler

ARCHIVE = "reconciliation-api-0.2.tar.xz"


def explain(entity: str, side: str | None) -> dict[str, Any]:
    if entity != "Q1":
        raise InputError(f"no entity is called {entity}")
    return {"entity": entity, "side": side or "source", "counterpart": "ada", "confidence": 0.9}


@pytest.fixture(scope="module")
def application() -> FastAPI:
    return reconciliation_application(reconciler(), "people", explain, hosts=("testserver", "127.0.0.1"))


@pytest.fixture
def client(application: FastAPI) -> TestClient:
    return TestClient(application)


@cache
def published() -> dict[str, str]:
    """Read the files of the archive by their paths; none if the archive does not exist."""
    home = Path(os.environ.get("LARGEGNN_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (home / ARCHIVE).exists():
        return {}
    with tarfile.open(home / ARCHIVE) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        return {name.removeprefix("./"): file.read().decode() for name, file in files.items() if file is not None}


def validate(kind: str, value: Any) -> None:
    """Validate a value by a published schema."""
    import jsonschema
    import referencing
    from referencing.jsonschema import DRAFT7

    if not published():
        pytest.skip(f"no {ARCHIVE} (set LARGEGNN_DATA)")
    space = "https://reconciliation-api.github.io/specs/0.2/schemas/"
    swagger = {"definitions": {"securityDefinitions": {"additionalProperties": {"required": ["type"]}}}}
    replacement = DRAFT7.create_resource(swagger)
    other = DRAFT7.create_resource(json.loads(published()["0.2/schemas/type.json"]))
    registry: Any = referencing.Registry().with_resources(
        [("http://swagger.io/v2/schema.json", replacement), (f"{space}type.json", other)]
    )
    schema = json.loads(published()[f"0.2/schemas/{kind}.json"])
    jsonschema.Draft7Validator(schema, registry=registry).validate(value)


def examples(kind: str, state: str) -> list[str]:
    return [text for name, text in published().items() if name.startswith(f"0.2/examples/{kind}/{state}/")]


def test_the_manifest(client: TestClient) -> None:
    manifest = client.get("/").json()
    validate("manifest", manifest)
    assert manifest["identifierSpace"] == "http://t.org/"
    assert manifest["view"]["url"] == "http://testserver/view?id={{id}}"


def test_the_validator_can_fail() -> None:
    import jsonschema

    for kind in ("manifest", "reconciliation-result-batch", "data-extension-response"):
        for text in examples(kind, "invalid"):
            with pytest.raises(jsonschema.ValidationError):
                validate(kind, json.loads(text))


def test_every_valid_batch_is_answered_and_every_invalid_one_refused(client: TestClient) -> None:
    ours = json.dumps({"a": {"query": "Ada Lovelace"}, "b": {"query": "http://s.org/Q1"}, "c": {"query": "zz"}})
    for text in [*examples("reconciliation-query-batch", "valid"), ours]:
        for answer in (client.post("/", data={"queries": text}), client.get("/", params={"queries": text})):
            assert answer.status_code == 200
            assert answer.json().keys() == json.loads(text).keys()
            validate("reconciliation-result-batch", answer.json())
    for text in [*examples("reconciliation-query-batch", "invalid"), "{", "[]", '{"q": {}}']:
        refused = client.post("/", data={"queries": text})
        assert (refused.status_code, "Traceback" in refused.text) == (400, False)


def test_suggest_preview_and_data_extension(client: TestClient) -> None:
    for kind, schema, prefix, first in (
        ("entity", "suggest-entities", "aug", "http://t.org/ada"),
        ("type", "suggest-types", "hum", "http://t.org/Human"),
        ("property", "suggest-properties", "bor", BORN),
    ):
        found = client.get(f"/suggest/{kind}", params={"prefix": prefix}).json()
        validate(f"{schema}-response", found)
        assert found["result"][0]["id"] == first
    assert client.get("/suggest/nonsense?prefix=a").status_code == 400
    proposed = client.get("/properties?type=x&limit=2").json()
    validate("data-extension-property-proposal", proposed)
    assert len(proposed["properties"]) == 2
    own = {"ids": ["http://t.org/ada"], "properties": [{"id": LABEL, "settings": {"limit": "1"}}, {"id": "designed"}]}
    for text in [*examples("data-extension-query", "valid"), json.dumps(own)]:
        answer = client.post("/", data={"extend": text})
        assert answer.status_code == 200
        validate("data-extension-response", answer.json())
    assert client.post("/", data={"extend": "{}"}).status_code == 400
    page = client.get("/preview", params={"id": "http://t.org/engine"})
    assert "Analytical &lt;Engine&gt;" in page.text
    assert "frame-ancestors 'self' http://127.0.0.1:*" in page.headers["content-security-policy"]
    assert client.get("/view", params={"id": "unknown"}).status_code == 400
    assert client.get("/preview").status_code == 422


def test_requests_as_openrefine_sends_them(client: TestClient) -> None:
    """Requests of its manual: `p` beside `pid`, values that were reconciled before, settings as text, a cursor."""
    query = {
        "query": "Ada Lovelace",
        "type": "http://t.org/Human",
        "type_strict": "should",
        "limit": 5,
        "properties": [
            {"p": "born", "pid": BORN, "v": "1815-12-10"},
            {"pid": "designed", "v": {"id": "http://t.org/engine"}},
        ],
    }
    answer = client.post("/", data={"queries": json.dumps({"q0": query})}).json()
    validate("reconciliation-result-batch", answer)
    assert [one["id"] for one in answer["q0"]["result"]] == ["http://t.org/ada"]
    assert answer["q0"]["result"][0]["match"]
    extend = {
        "ids": ["http://t.org/ada"],
        "properties": [{"id": BORN, "settings": {"limit": "0", "content": "literal"}}],
    }
    rows = client.post("/", data={"extend": json.dumps(extend)}).json()["rows"]
    assert rows["http://t.org/ada"][BORN] == [{"str": "1815-12-10"}]
    assert client.get("/suggest/entity", params={"prefix": "ada", "cursor": "0"}).status_code == 200
    assert client.get("/properties", params={"type": "http://t.org/Human", "limit": "64"}).status_code == 200


def test_scripts_of_this_machine_may_call_back(client: TestClient) -> None:
    """JSONP, as in version 0.1; invalid function names and pages of other machines are refused."""
    asked = {"queries": json.dumps({"q0": {"query": "Ada Lovelace"}}), "callback": "jQuery1_2.cb$"}
    answer = client.get("/", params=asked, headers={"referer": "http://127.0.0.1:3333/", "sec-fetch-site": "same-site"})
    assert answer.headers["content-type"].startswith("text/javascript")
    found = re.fullmatch(r"/\*\*/jQuery1_2\.cb\$\((.*)\);", answer.text)
    assert found is not None
    assert json.loads(found[1]) == client.get("/", params={"queries": asked["queries"]}).json()
    for path in ("/?callback=f", "/suggest/entity?prefix=ada&callback=f", "/properties?callback=f"):
        assert client.get(path).text.startswith("/**/f({")
        for headers in ({"referer": "http://evil.example/"}, {"sec-fetch-site": "cross-site"}):
            assert client.get(path, headers=headers).status_code == 403
    for name in ("alert(1)//", "<script>", "", "a" * 200, "1a", "é"):
        assert client.get("/", params={"callback": name}).status_code == 400, name


def test_suggestions_go_on_and_fly_out(client: TestClient) -> None:
    everything = client.get("/suggest/property", params={"prefix": ""}).json()["result"]
    assert client.get("/suggest/property", params={"prefix": "", "cursor": "1"}).json()["result"] == everything[1:]
    assert client.get("/suggest/entity", params={"prefix": "ada", "cursor": "50"}).json()["result"] == []
    about = client.get("/flyout/entity", params={"id": "http://t.org/engine"}).json()
    assert about["id"] == "http://t.org/engine"
    assert "Analytical &lt;Engine&gt;" in about["html"]
    flyout = client.get("/").json()["suggest"]["entity"]
    assert flyout["flyout_service_path"] == "/flyout/entity?id=${id}"


def test_every_example_of_the_protocol(client: TestClient) -> None:
    """Valid requests are answered; the service refuses invalid requests, and the schema invalid answers."""
    import jsonschema

    asked = {"reconciliation-query-batch": "queries", "data-extension-query": "extend"}
    seen = set()
    for name, text in published().items():
        parts = name.split("/")
        if parts[1] != "examples" or len(parts) != 5:
            continue
        kind, state = parts[2], parts[3]
        if kind in asked:
            status = client.post("/", data={asked[kind]: text}).status_code
            assert status == (200 if state == "valid" else 400), name
        elif state == "invalid":
            with pytest.raises(jsonschema.ValidationError):
                validate(kind, json.loads(text))
        seen.add((kind, state))
    if published():
        assert {("manifest", "invalid"), ("reconciliation-query-batch", "invalid")} <= seen
        assert len(seen) >= 15


def test_a_batch_of_a_thousand(client: TestClient) -> None:
    batch = {f"q{number}": {"query": f"ada lovelace {number % 7}", "limit": 3} for number in range(1000)}
    answer = client.post("/", data={"queries": json.dumps(batch)}).json()
    assert len(answer) == 1000
    validate("reconciliation-result-batch", answer)
    batch["one too many"] = {"query": "x"}
    assert client.post("/", data={"queries": json.dumps(batch)}).status_code == 400


def test_plain_json(client: TestClient) -> None:
    assert client.get("/align?entity=Q1&side=source").json()["counterpart"] == "ada"
    assert client.get("/align?entity=Q9").status_code == 400
    many = client.post("/align", json={"entities": ["Q1", "Q9"]}).json()["results"]
    assert [one.get("confidence") for one in many] == [0.9, None]
    assert many[1]["error"] == "no entity is called Q9"
    for body in (b"", b"[]", b'{"entities": 3}', b'{"entities": [3]}', b"\xff", b"{" * 10_000):
        assert client.post("/align", content=body).status_code == 400


def test_who_may_read(client: TestClient) -> None:
    """The page of OpenRefine, on another port of this machine, may read; a page of another machine may not."""
    local = client.get("/", headers={"origin": "http://127.0.0.1:3333"})
    assert local.headers["access-control-allow-origin"] == "http://127.0.0.1:3333"
    foreign = client.get("/", headers={"origin": "http://evil.example"})
    assert "access-control-allow-origin" not in foreign.headers
    assert client.post("/", data={"queries": "{}"}, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.post("/", data={"queries": "{}"}, headers={"origin": "http://127.0.0.1:3333"}).status_code == 200
    assert client.post("/", content=b"x" * 10_000_000).status_code == 413
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.fixture(scope="module")
def address(application: FastAPI) -> Iterator[str]:
    """Run the service on a real socket; gives its address."""
    import uvicorn

    with listening("127.0.0.1", 0) as bound:
        server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


@pytest.mark.filterwarnings("ignore")  # warnings of pandas, which the client uses
def test_a_client_written_by_others(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "NaN", np.nan, raising=False)  # the client was written before NumPy 2
    pandas, client = pytest.importorskip("pandas"), pytest.importorskip("reconciler")
    names = pandas.Series(["Ada Lovelace", "Charles Babbage", "no entity at all"])
    found = client.reconcile(names, top_res=1, reconciliation_endpoint=address)
    rows = {row["input_value"]: row for row in found.to_dict("records")}
    assert rows["Ada Lovelace"]["id"] == "http://t.org/ada"
    assert rows["Ada Lovelace"]["match"]
    assert rows["Charles Babbage"]["score"] == 40.0
