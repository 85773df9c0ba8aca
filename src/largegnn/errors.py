"""What can go wrong, as seen by the caller.

LargeGNNError
├── InputError      the user can fix it: a file, a setting, a flag           exit code 2
├── StorageError    the machine refused: disk full, folder not writable      exit code 3
├── HelperError     a helper process was lost, out of memory for example     exit code 3
├── TrainingError   training diverged: the loss is not a number              exit code 4
└── ArtifactError   the program is wrong: a value in an impossible state     a bug, exit code 1
"""

from __future__ import annotations

__all__ = ["ArtifactError", "HelperError", "InputError", "LargeGNNError", "StorageError", "TrainingError"]


class LargeGNNError(Exception):
    """Any failure this package reports on purpose."""

    exit_code = 1


class InputError(LargeGNNError):
    """Bad input: says what was expected, what was found and where, and what to do about it."""

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        where: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem = problem
        self.expected = expected
        self.found = found
        self.where = where
        self.fix = fix
        details = (("where", where), ("expected", expected), ("found", found), ("fix", fix))
        lines = [problem] + [f"  {label}: {text}" for label, text in details if text is not None]
        super().__init__("\n".join(lines))


class StorageError(LargeGNNError):
    """The run folder could not be written or locked; what was finished before is intact."""

    exit_code = 3


class HelperError(LargeGNNError):
    """A helper process ended before its work was done, or could not do it; the caller may do the work itself."""

    exit_code = 3


class TrainingError(LargeGNNError):
    """Training cannot continue; the last good state is kept."""

    exit_code = 4


class ArtifactError(LargeGNNError, ValueError):
    """A value that passes between steps is in a state it must never be in."""
