from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts.arrays import frozen
from largegnn.errors import ArtifactError


@pytest.mark.parametrize("shape", [(None, 2), (0, 2), (2, 0), (None, 0)])
def test_nothing_takes_the_shape_that_is_asked_for(shape: tuple[int | None, int]) -> None:
    """A run without pairs has as many columns of evidence as any other."""
    for nothing in (np.empty(0), np.empty((0, 2)), np.empty((2, 0))):
        assert frozen(nothing, np.float32, shape, "x").shape == tuple(want or 0 for want in shape)


def test_nothing_is_not_taken_for_something() -> None:
    with pytest.raises(ArtifactError, match="x has shape"):
        frozen([], np.float32, (1, 2), "x")
