from __future__ import annotations

from typing import Any

from largegnn.machine.compiled import compiled


def test_what_cannot_be_kept_on_disk_is_compiled_all_the_same() -> None:
    namespace: dict[str, Any] = {}
    exec("def add(a, b):\n    return a + b", namespace)  # a function without a file has no place to be kept in
    assert compiled(namespace["add"])(1, 2) == 3
