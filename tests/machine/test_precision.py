from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from largegnn.machine.precision import Precision, full_precision, training_precision

ROOT = Path(__file__).parents[2]
MATMUL = torch.backends.cuda.matmul


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = MATMUL.fp32_precision
    yield
    MATMUL.fp32_precision = before


def test_the_oldest_torch_allowed_has_the_flag() -> None:
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (torch_requirement,) = (text for text in requirements if re.match(r"torch\b", text))
    lowest = re.fullmatch(r"torch>=(\d+)\.(\d+)", torch_requirement)
    assert lowest is not None
    assert (int(lowest[1]), int(lowest[2])) >= (2, 9), "fp32_precision came with torch 2.9"


@pytest.mark.parametrize(("precision", "inside"), [("tf32", "tf32"), ("float32", "ieee")])
@pytest.mark.parametrize("before", ["tf32", "ieee"])
def test_training_has_reduced_precision_only_if_set(precision: Precision, inside: str, before: str) -> None:
    MATMUL.fp32_precision = before
    with training_precision(precision):
        assert MATMUL.fp32_precision == inside
    assert MATMUL.fp32_precision == before


def fail_inside() -> None:
    with full_precision():
        assert (MATMUL.fp32_precision, MATMUL.allow_fp16_reduced_precision_reduction) == ("ieee", False)
        raise ZeroDivisionError


def test_full_precision_is_set_and_the_flags_are_restored() -> None:
    MATMUL.fp32_precision = "tf32"
    before = MATMUL.allow_fp16_reduced_precision_reduction
    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert (MATMUL.fp32_precision, MATMUL.allow_fp16_reduced_precision_reduction) == ("tf32", before)
