"""Simulate a full disk."""

from __future__ import annotations

import errno
import os
from typing import IO, Any

import pytest

from largegnn.machine.atomic import ByteSink

__all__ = ["fail_after"]


def fail_after(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    """Let writing fail with a full disk after `num_bytes` in all."""
    written = 0

    class FullDisk(ByteSink):
        def __init__(self, file: IO[bytes]) -> None:
            super().__init__(file)
            real = file

            class File:
                def __getattr__(self, name: str) -> Any:
                    return getattr(real, name)

                def write(self, data: Any) -> int:
                    nonlocal written
                    written += len(data)
                    if written > num_bytes:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    return real.write(data)

            self._file = File()  # type: ignore[assignment]

    monkeypatch.setattr("largegnn.machine.atomic.ByteSink", FullDisk)
