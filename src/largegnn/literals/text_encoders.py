"""Encode texts as vectors of their meaning (embeddings), with a model that the user provides.

In: texts as they were written, and the folder of a model. Out: one vector for each text, (n, d); texts of similar
meaning have near vectors. By default there is no text encoder, and nothing is ever downloaded.
A text encoder is a function of the texts and the folder of the model, which it may ignore; `text_encoder` finds it by
the name of a library or as `module:function`.
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
_MAX_PRODUCTS = 1 << 25  # products in memory at a time


def model2vec(texts: Sequence[str], model: str) -> FloatArray:
    """Encode texts with a model2vec model in a folder: the mean of word vectors, fast on any machine."""
    folder = _folder(model, "model2vec")
    try:
        from model2vec import StaticModel
    except ImportError:
        raise _missing("model2vec") from None
    vectors: FloatArray = np.asarray(StaticModel.from_pretrained(folder).encode(list(texts)), dtype=np.float32)
    return vectors


def sentence_transformers(texts: Sequence[str], model: str) -> FloatArray:
    """Encode texts with a sentence-transformers model in a folder."""
    folder = _folder(model, "sentence_transformers")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise _missing("sentence-transformers") from None
    encoder: Any = SentenceTransformer(str(folder), local_files_only=True)
    return np.asarray(encoder.encode(list(texts), show_progress_bar=False), dtype=np.float32)


def text_encoder(name: str) -> TextEncoder:
    """The text encoder of this name: `model2vec`, `sentence_transformers`, or the user's own `module:function`."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    expected = f"one of {', '.join(_BUILT_IN)}, or module:function"
    if ":" not in name:
        raise InputError(f"no text encoder is called {name[:100]!r}", expected=expected)
    encoder: TextEncoder = load_address(name, "text encoder", expected)
    return encoder


_BUILT_IN: dict[str, TextEncoder] = {"model2vec": model2vec, "sentence_transformers": sentence_transformers}


def encode_texts(name: str, texts: Sequence[str], model: str) -> FloatArray:
    """Encode texts as vectors of length 1, (n, d), by the text encoder of this name.

    An `InputError` if the encoder does not return one vector of finite numbers for each text.
    """
    vectors = np.asarray(text_encoder(name)(texts, model), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not bool(np.isfinite(vectors).all()):
        raise InputError(
            f"the text encoder {name} returned no valid vectors",
            expected=f"finite numbers of the shape ({len(texts)}, d)",
            found=f"the shape {vectors.shape}",
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit


def nearest_meanings(left: FloatArray, right: FloatArray, k: int) -> tuple[IntArray, IntArray]:
    """Find the k rows of `right` nearest to each row of `left`; returns the pairs as two lists of rows (p,)."""
    k = min(k, len(right))
    if not k or not len(left):
        none = np.empty(0, dtype=np.int64)
        return none, none
    num_rows = max(1, _MAX_PRODUCTS // len(right))
    nearest = [
        np.argpartition(-(left[start : start + num_rows] @ right.T), k - 1, axis=1)[:, :k]
        for start in range(0, len(left), num_rows)
    ]
    return np.repeat(np.arange(len(left)), k), np.concatenate(nearest).ravel().astype(np.int64)


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
