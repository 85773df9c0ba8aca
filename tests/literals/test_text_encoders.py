"""Test text encoders: the nearest by meaning, a missing model folder, and results that are not vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import FloatArray
from largegnn.errors import InputError
from largegnn.literals.candidates import literal_candidates
from largegnn.literals.text_encoders import encode_texts, nearest_meanings, text_encoder
from tests.literals.test_candidates import side


def test_the_nearest_are_those_of_all_products() -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(count, 8)).astype(np.float32) for count in (40, 30))
    rows = nearest_meanings(left, right, 3)
    for row in range(40):
        assert set(rows[1][rows[0] == row].tolist()) == set(np.argsort(-(right @ left[row]))[:3].tolist())
    assert len(nearest_meanings(left, right[:0], 3)[0]) == 0
    assert len(nearest_meanings(left, right[:2], 3)[0]) == 80


def test_meanings_find_pairs_that_share_no_letters() -> None:
    source, target = side({0: ["dog"]}, {0: "dog"}), side({5: ["hound"], 6: ["cat"]}, {5: "hound", 6: "cat"})
    vectors = np.eye(2, dtype=np.float32)
    assert len(literal_candidates(source, target, k=1)) == 0
    graph = literal_candidates(source, target, 1, (vectors[:1], vectors))
    assert [0, 5] in graph.pairs().tolist()
    assert graph.column("meaning")[graph.find(np.array([[0, 5]]))[0]] == 1.0


@pytest.mark.parametrize("name", ["model2vec", "sentence_transformers"])
def test_a_missing_model_folder_is_refused(name: str, tmp_path: Path) -> None:
    for model in ("", str(tmp_path / "nowhere")):
        with pytest.raises(InputError, match="needs the folder of a model"):
            encode_texts(name, ["a"], model)


def twice(texts: Sequence[str], model: str) -> FloatArray:
    """An encoder as a user may write it: all numbers are the model's name."""
    return np.full((len(texts), 3), float(model), dtype=np.float32)


def test_vectors_are_checked_and_have_length_one() -> None:
    address = f"{__name__}:twice"
    assert np.linalg.norm(encode_texts(address, ["a", "b"], "2"), axis=1) == pytest.approx([1.0, 1.0])
    assert not encode_texts(address, ["a"], "0").any()
    with pytest.raises(InputError, match="returned no valid vectors"):
        encode_texts(address, ["a"], "nan")


@pytest.mark.parametrize("name", ["nonsense", "tests.nowhere:twice", f"{__name__}:nothing"])
def test_an_unknown_encoder_is_refused_and_the_known_are_listed(name: str) -> None:
    with pytest.raises(InputError) as error:
        text_encoder(name)
    assert error.value.expected == "one of model2vec, sentence_transformers, or module:function"


# The package leaves a file open.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_real_folder_of_model2vec(tmp_path: Path) -> None:
    """Three words with vectors of their own; a text is the mean of its words."""
    static = pytest.importorskip("model2vec", reason="model2vec is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = tokenizers.models.WordLevel({"[UNK]": 0, "dog": 1, "hound": 2, "cat": 3}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    vectors = np.array([[0, 0], [1, 0.1], [1, 0], [0, 1]], dtype=np.float32)
    static.StaticModel(vectors, tokenizer).save_pretrained(tmp_path / "model")
    found = encode_texts("model2vec", ["dog", "hound", "cat"], str(tmp_path / "model"))
    assert found[0] @ found[1] > 0.9 > found[0] @ found[2]
