from __future__ import annotations

from typing import Any

from largegnn.machine.compiled import compiled


def test_a_function_that_cannot_be_cached_is_compiled() -> None:
    namespace: dict[str, Any] = {}
    exec("def add(a, b):\n    return a + b", namespace)  # a function without a file has no cache folder
    assert compiled(namespace["add"])(1, 2) == 3
