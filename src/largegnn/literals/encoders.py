"""Encode texts as vectors of their meaning, by a model of the user's.

In: texts as they were written, and the folder of a model. Out: one row for each text, (n, d); near rows mean the same.
By default there is no text encoder, and nothing is ever downloaded. A text encoder is a function of texts and the
folder of a model, which it may ignore: `text_encoder` finds it by the name of a library or as `module:function`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.artifacts import FloatArray, IntArray
from largegnn.errors import InputError
from largegnn.parts import load_address

__all__ = [
    "TextEncoder",
    "encode_texts",
    "model2vec",
    "nearest_meanings",
    "sentence_transformers",
    "text_encoder",
]

TextEncoder = Callable[[Sequence[str], str], FloatArray]
_PRODUCTS = 1 << 25  # products held at once


def model2vec(texts: Sequence[str], model: str) -> FloatArray:
    """A folder of model2vec: vectors of words, averaged; fast on any machine."""
    folder = _folder(model, "model2vec")
    try:
        from model2vec import StaticModel
    except ImportError:
        raise _missing("model2vec") from None
    found: FloatArray = np.asarray(StaticModel.from_pretrained(folder).encode(list(texts)), dtype=np.float32)
    return found


def sentence_transformers(texts: Sequence[str], model: str) -> FloatArray:
    """A folder of sentence-transformers."""
    folder = _folder(model, "sentence_transformers")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise _missing("sentence-transformers") from None
    encoder: Any = SentenceTransformer(str(folder), local_files_only=True)
    return np.asarray(encoder.encode(list(texts), show_progress_bar=False), dtype=np.float32)


def text_encoder(name: str) -> TextEncoder:
    """The text encoder of this name: `model2vec`, `sentence_transformers`, or `module:function` of one's own."""
    if name in _KNOWN:
        return _KNOWN[name]
    expected = f"one of {', '.join(_KNOWN)}, or module:function"
    if ":" not in name:
        raise InputError(f"no text encoder is called {name[:100]!r}", expected=expected)
    found: TextEncoder = load_address(name, "text encoder", expected)
    return found


_KNOWN: dict[str, TextEncoder] = {"model2vec": model2vec, "sentence_transformers": sentence_transformers}


def encode_texts(name: str, texts: Sequence[str], model: str) -> FloatArray:
    """Vectors of length 1, (n, d), by the text encoder of this name; refuses a result that is not one vector a text."""
    vectors = np.asarray(text_encoder(name)(texts, model), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not bool(np.isfinite(vectors).all()):
        raise InputError(
            f"the text encoder {name} gave no vectors",
            expected=f"finite numbers of the shape ({len(texts)}, d)",
            found=f"the shape {vectors.shape}",
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit


def nearest_meanings(left: FloatArray, right: FloatArray, k: int) -> tuple[IntArray, IntArray]:
    """The k nearest of the right for each row of the left: rows of both (p,)."""
    k = min(k, len(right))
    if not k or not len(left):
        none = np.empty(0, dtype=np.int64)
        return none, none
    step = max(1, _PRODUCTS // len(right))
    near = [
        np.argpartition(-(left[start : start + step] @ right.T), k - 1, axis=1)[:, :k]
        for start in range(0, len(left), step)
    ]
    return np.repeat(np.arange(len(left)), k), np.concatenate(near).ravel().astype(np.int64)


def _folder(model: str, encoder: str) -> Path:
    folder = Path(model)
    if not model or not folder.is_dir():
        raise InputError(
            f"the text encoder {encoder} needs the folder of a model",
            found=f"compare.text_model = {model!r}",
            expected="a folder on this machine; nothing is downloaded",
            fix="--set compare.text_model=FOLDER",
        )
    return folder


def _missing(package: str) -> InputError:
    return InputError(f"the package {package} is not installed", fix=f"pip install {package}")
