"""A refused setting as an `InputError`: which key, what is allowed, what was found, and near names."""

from __future__ import annotations

import difflib

from pydantic import ValidationError

from largegnn.errors import InputError
from largegnn.settings.describe import describe
from largegnn.settings.parts import RefusedPartError
from largegnn.settings.quoting import shown
from largegnn.settings.section import Section
from largegnn.settings.writing import toml_value

__all__ = ["refusal_of", "unknown_key"]

_LIST_ALL = "`largegnn config` prints every setting"


def refusal_of(model: type[Section], error: ValidationError) -> InputError:
    """The first of the errors, with the full key of the setting."""
    first = error.errors(include_url=False)[0]
    known = {setting.key: setting for setting in describe(model)}
    # A setting of several types adds the type that was tried to its path, and weights add the name of the part.
    path = [str(part) for part in first["loc"]]
    own = next((key for size in range(len(path), 0, -1) if (key := ".".join(path[:size])) in known), None)
    key = model.place + (own or ".".join(path))
    if first["type"] == "extra_forbidden":
        return unknown_key(model, key)
    problem = str(first["msg"]).removeprefix("Value error, ")
    if own is None:
        return InputError("the settings do not go together" + (f" ({key})" if path else ""), expected=problem)
    setting = known[own]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, RefusedPartError):
        reason = cause.reason
        return InputError(
            reason.problem, where=f"the setting {key}", expected=reason.expected, found=reason.found, fix=reason.fix
        )
    if setting.kind == "weights":
        key = model.place + ".".join(path[: own.count(".") + 2])
    default = "" if setting.field.is_required() else f" (default {toml_value(setting.default)})"
    return InputError(
        f"the setting {shown(key)} has an impossible value",
        expected=setting.allowed + default,
        found=shown(first["input"]),
    )


def unknown_key(model: type[Section], key: str) -> InputError:
    """A key that no setting has, with the settings whose names are near."""
    known = [model.place + setting.key for setting in describe(model)]
    last = key.rpartition(".")[2]
    near = difflib.get_close_matches(key[:100], known, n=3, cutoff=0.5)
    near += [name for name in known if name.rpartition(".")[2] == last and name not in near]
    return InputError(f"no setting is called {shown(key)}", expected=", ".join(near or known), fix=_LIST_ALL)
