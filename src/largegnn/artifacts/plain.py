"""Convert dataclasses to dicts and lists for JSON, and back.

In: frozen dataclasses of plain values, tuples, mappings and other such dataclasses. Out: dicts and lists; `from_plain`
makes the dataclasses of them again, by their type hints, and refuses values of another type. Only the standard library
is used, so that a run folder can be read on any machine.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from largegnn.errors import StorageError

__all__ = ["from_plain", "to_plain"]

_Value = TypeVar("_Value")


def to_plain(value: Any) -> Any:
    """Convert dataclasses, tuples and mappings to dicts and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    return value


def from_plain(kind: type[_Value], value: Any) -> _Value:
    """Convert the result of `to_plain` back to a value of type `kind`; a `StorageError` if it is not one."""
    try:
        return typing.cast(_Value, _read(kind, value))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise StorageError(f"a stored {getattr(kind, '__name__', kind)} cannot be read: {error}") from None


def _read(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _read(next(argument for argument in arguments if argument is not type(None)), value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = {field.name for field in dataclasses.fields(kind)}
        return kind(**{name: _read(hints[name], entry) for name, entry in value.items() if name in names})
    if origin is tuple:
        # Strings and mappings can be iterated, too, but are not lists.
        if not isinstance(value, list | tuple):
            raise TypeError(f"expected a list, found {value!r:.60}")
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_read(arguments[0], entry) for entry in value)
        return tuple(_read(argument, entry) for argument, entry in zip(arguments, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(arguments[1], entry) for key, entry in value.items()}
    if kind in (int, float, str, bool):
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"expected {kind.__name__}, found {value!r:.60}")
    if origin is typing.Literal and value not in arguments:
        raise ValueError(f"expected one of {', '.join(map(str, arguments))}, found {value!r:.60}")
    return value
