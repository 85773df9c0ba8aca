"""Reuse or compute the steps of a run: `step(name, function, *arguments)`.

In: a run folder, and a function that returns a frozen dataclass: the artifacts it made, and `outcome` with facts about
them. Out: the same dataclass, its artifacts mapped from the folder. The fingerprint of a step covers the function's
version and every positional argument, settings by value and artifacts by the checksums of their arrays; so a step
cannot depend on anything else. Keyword arguments (a device, a work folder) must not change the result and do not count.
A step whose record has the same fingerprint and whose files are intact is reused. A step that was computed from other
arguments is refused, not overwritten, unless `force` names it or an earlier step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import inspect
import json
import logging
import re
import shutil
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from largegnn.artifacts import from_plain, to_plain
from largegnn.errors import InputError
from largegnn.machine.metering import Meter, release_memory
from largegnn.runfolder.store import RunStore
from largegnn.settings import flat_settings

__all__ = ["LastStepError", "Steps", "derived_seed", "versioned"]

_log = logging.getLogger(__name__)
_CHECKSUM = re.compile(r"[0-9a-f]{32}$")
_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class LastStepError(Exception):
    """Raised after the step that the caller named as the last one."""


def versioned(number: int) -> Callable[[_Function], _Function]:
    """Mark a function whose results changed, so that results of older versions are not reused."""

    def mark(function: _Function) -> _Function:
        function.version = number  # type: ignore[attr-defined]
        return function

    return mark


def derived_seed(seed: int, step: str) -> int:
    """Derive the random seed of a step from the seed of the run."""
    return int(np.random.SeedSequence([seed, *step.encode()]).generate_state(1)[0])


class Steps:
    """The steps of one run, in the order of `names`; call it inside `store.lock()`.

    `first` and `last` bound what may be computed, `force` names the first step to compute again. `overrides` holds
    functions that compute a step in another way than the pipeline does, from the same arguments. `before_computing` is
    called before the first step is computed: until then nothing in the folder has changed, and afterwards nothing is
    refused.
    """

    def __init__(
        self,
        store: RunStore,
        names: Sequence[str],
        *,
        first: str | None = None,
        last: str | None = None,
        force: str | None = None,
        overrides: Mapping[str, Callable[..., Any]] | None = None,
        before_computing: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._names, self._overrides = store, list(names), overrides or {}
        self.before_computing = before_computing
        self._first = 0 if first is None else self._index(first)
        self._last = len(names) - 1 if last is None else self._index(last)
        self._forced = len(names) if force is None else self._index(force)
        if self._first > self._last:
            raise InputError(f"--from {first} comes after --to {last}", expected=f"the order {', '.join(names)}")
        if self._forced < self._first:
            raise InputError(f"--force {force} comes before --from {first}", fix=f"start with --from {force}")
        self.computed: list[str] = []
        self._known: dict[tuple[int, int], str] = {}
        self._kept: list[Any] = []  # what `_known` speaks of must not be freed

    def __call__(self, name: str, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Return the result of `function` for these arguments, from the run folder or computed and saved there."""
        arguments = self._arguments(function, args)
        version = getattr(function, "version", 1)
        print_ = _digest({"step": name, "version": version, "arguments": arguments})
        for key, value in self._bound(function, args):
            if hasattr(value, "recorded"):  # what a message needs besides
                arguments[key] = value.recorded()
        record = self._store.steps.get(name) if self._index(name) < self._forced else None
        if record is not None and record.fingerprint != print_:
            self._refuse(name, record.arguments, arguments)
        if record is not None and self._is_reusable(name):
            _log.info("%s: reused from %s", name, self._store.folder)
        elif self._index(name) < self._first:
            raise InputError(
                f"the run folder has no intact step {name}, which --from {self._names[self._first]} needs",
                where=str(self._store.folder),
                fix=f"start with --from {name}",
            )
        else:
            self._compute(name, self._overrides.get(name, function), args, kwargs, print_, arguments)
        if self._index(name) >= self._last:
            raise LastStepError
        return self._load(name, function)

    def work_folder(self, name: str) -> Path:
        """A folder for the intermediate files of a step; it survives a kill and is removed when the step is done."""
        return self._store.folder / f"work-{name}"

    def _compute(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        print_: str,
        arguments: dict[str, Any],
    ) -> None:
        if not self.computed:
            self.before_computing()
        self._forget_from(self._index(name))
        work = self.work_folder(name)
        if self._index(name) >= self._forced:
            shutil.rmtree(work, ignore_errors=True)
        if "work" in kwargs:
            self._keep_work_of(work, print_)
        _log.info("%s: started", name)
        meter = Meter()
        made = function(*args, **kwargs)
        usage = meter.read()
        facts = {
            "fingerprint": print_,
            "arguments": arguments,
            "facts": to_plain(made.outcome),
            "seconds": round(usage.seconds, 3),
            "peak_memory_mb": round(usage.peak_memory_mb, 1),
            "peak_gpu_mb": None if usage.peak_gpu_mb is None else round(usage.peak_gpu_mb, 1),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        self._store.save_step(name, self._index(name) + 1, _artifacts_of(made), facts)
        self.computed.append(name)
        del made  # read back from the files, which are mapped
        release_memory()
        shutil.rmtree(work, ignore_errors=True)
        _log.info("%s: done in %.2f s, peak memory %.0f MB", name, usage.seconds, usage.peak_memory_mb)

    def _keep_work_of(self, work: Path, print_: str) -> None:
        """Empty the work folder if an interrupted step with other arguments left it."""
        note = work / "fingerprint"
        with contextlib.suppress(OSError):
            if note.read_text() == print_:
                return
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        note.write_text(print_)

    def _load(self, name: str, function: Callable[..., _Result]) -> _Result:
        """Load the result of a finished step as the type that the function returns."""
        kind = _returned_type(function)
        hints = typing.get_type_hints(kind)
        record = self._store.steps[name]
        values: dict[str, Any] = {}
        for field in dataclasses.fields(kind):
            if field.name == "outcome":
                values["outcome"] = from_plain(hints["outcome"], record.facts)
            elif field.name in record.files:
                artifact = self._store.load(name, field.name, _without_none(hints[field.name]))
                self._remember(artifact, self._store.checksums(name, field.name))
                values[field.name] = artifact
            else:
                values[field.name] = None
        return typing.cast(_Result, kind(**values))

    def _is_reusable(self, name: str) -> bool:
        """Whether the artifacts of a step are intact and its pages, which people may edit, exist."""
        pages = self._store.steps[name].facts.get("pages", {})
        return self._store.is_intact(name) and all((self._store.folder / file).is_file() for file in pages)

    def _forget_from(self, number: int) -> None:
        names = self._names[number:]
        for name in names:
            record = self._store.steps.get(name)
            # Pages would show what does not exist any more; people may have edited them, so they have no checksums.
            for file in {} if record is None else record.facts.get("pages", {}):
                (self._store.folder / file).unlink(missing_ok=True)
        self._store.forget(names)

    def _refuse(self, name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        raise InputError(
            "the output folder holds another run",
            where=str(self._store.folder),
            found=_difference(before, now) or f"step {name} of another version of the program",
            fix=f"name another folder, or replace it from there on with --force {name}",
        )

    def _index(self, name: str) -> int:
        if name not in self._names:
            raise InputError(f"no step is called {name[:100]!r}", expected=f"one of {', '.join(self._names)}")
        return self._names.index(name)

    def _arguments(self, function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
        """The positional arguments of a step as plain values, by the names of the parameters."""
        return {name: self._plain(value) for name, value in self._bound(function, args)}

    @staticmethod
    def _bound(function: Callable[..., Any], args: tuple[Any, ...]) -> Iterable[tuple[str, Any]]:
        return zip(inspect.signature(function).parameters, args, strict=False)

    def _plain(self, value: Any) -> Any:
        """Convert an argument: settings and plain values as they are, arrays and artifacts to checksums."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if hasattr(value, "plain"):
            return value.plain()
        if isinstance(value, np.ndarray):
            return self._checksum(value)
        if isinstance(value, Mapping):
            return {str(key): self._plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value]
        if dataclasses.is_dataclass(value):
            fields = {field.name: self._plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return _digest({"type": type(value).__name__, **fields})
        raise TypeError(f"a {type(value).__name__} has no fingerprint: pass it as a keyword argument")

    def _checksum(self, array: np.ndarray[Any, Any]) -> str:
        """The checksum of an array, which is already known for an array mapped from the folder."""
        known = self._known.get(_place(array))
        if known is None:
            known = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data).hexdigest()
        return f"{array.dtype.str}{list(array.shape)}:{known[:32]}"

    def _remember(self, artifact: Any, checksums: Mapping[str, str], prefix: str = "") -> None:
        """Note the checksums of the arrays of an artifact that was mapped from the folder."""
        for field in dataclasses.fields(artifact):
            value, key = getattr(artifact, field.name), f"{prefix}{field.name}"
            if isinstance(value, np.ndarray):
                self._note(value, checksums.get(key))
            elif isinstance(value, Mapping):
                for name, each in value.items():
                    self._note(each, checksums.get(f"{key}.{name}"))
            elif dataclasses.is_dataclass(value):
                self._remember(value, checksums, f"{key}.")

    def _note(self, value: Any, checksum: str | None) -> None:
        if isinstance(value, np.ndarray) and value.size and checksum is not None:
            self._known[_place(value)] = checksum
            self._kept.append(value)


def _place(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The address of an array in memory and its number of bytes."""
    return array.__array_interface__["data"][0], array.nbytes


def _artifacts_of(made: Any) -> dict[str, Any]:
    """The artifacts that a step returned, by name, without those that are None."""
    values = {field.name: getattr(made, field.name) for field in dataclasses.fields(made) if field.name != "outcome"}
    return {name: value for name, value in values.items() if value is not None}


def _returned_type(function: Callable[..., Any]) -> Any:
    """The return type of a function; its other annotations may name types imported for type checks only."""
    kind = function.__annotations__["return"]
    return eval(kind, function.__globals__) if isinstance(kind, str) else kind


def _without_none(kind: Any) -> Any:
    return next((each for each in typing.get_args(kind) if each is not type(None)), kind)


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings that differ, by dotted key, and the names of other arguments that differ."""
    old, new = flat_settings(before), flat_settings(now)
    changed = [
        f"{key.removeprefix('inputs.')} is not the file it was made from"
        if key.startswith("inputs.")
        else f"{key} is not what it was"
        if isinstance(value, str) and _CHECKSUM.search(value)
        else f"{key} was {old.get(key)!r}, is {value!r}"
        for key, value in new.items()
        if old.get(key) != value
    ]
    return "; ".join(changed)
