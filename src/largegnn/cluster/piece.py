"""A piece of work where it is done: on a worker of the cluster.

In: a function and its arguments, some of them named instead of sent. Out: what the function gives. A disk that is full
or a file that cannot be opened there is an error that names the machine: the person who reads it sits at another one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TypeVar

from largegnn.cluster.mapped import unpacked
from largegnn.errors import StorageError

__all__ = ["make_piece"]

_Result = TypeVar("_Result")


def make_piece(function: Callable[..., _Result], *arguments: object) -> _Result:
    """What `function` gives for the arguments, with named arrays opened."""
    try:
        return function(*(unpacked(argument) for argument in arguments))
    except (OSError, StorageError) as error:
        raise StorageError(_described(error)) from None


def _described(error: OSError | StorageError) -> str:
    from ray.util import get_node_ip_address

    node = f"{platform.node()} ({get_node_ip_address()})"  # type: ignore[no-untyped-call]
    if isinstance(error, StorageError):  # it says what to do
        return f"on the node {node}: {error}"
    where = "" if error.filename is None else f" {error.filename}"
    return (
        f"on the node {node}:{where} {error.strerror or error}; what was finished before is intact: free some space "
        "there or look at it with `largegnn cluster check`, and run again with --resume"
    )
