from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from largegnn.artifacts import EntityEmbeddings, StringTable, TaskNames
from largegnn.errors import ArtifactError, InputError, StorageError
from largegnn.export import EMBEDDING_FORMS, ENTITY_LIST, export_embeddings
from tests.export.full_disk import fail_after
from tests.export.nasty import NASTY

FORMS = list(EMBEDDING_FORMS)


def embeddings_of(count: int, uncovered: tuple[int, ...] = ()) -> tuple[EntityEmbeddings, TaskNames]:
    vectors = np.random.default_rng(3).normal(size=(count, 5)).astype(np.float32)
    covered = np.ones(count, dtype=bool)
    covered[list(uncovered)] = False
    vectors[~covered] = np.nan
    names = [NASTY[row % len(NASTY)] for row in range(count)]
    return EntityEmbeddings(vectors, covered), TaskNames(StringTable.from_strings(names), StringTable.from_strings([]))


def read(path: Path, form: str) -> npt.NDArray[np.float32]:
    vectors: npt.NDArray[np.float32] = np.load(path) if form.endswith("npy") else load_file(path)["vectors"]
    return vectors


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk_bytes", [1, 50, 1 << 24])
def test_vectors_come_back(
    form: str, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("largegnn.export.embeddings._CHUNK_BYTES", chunk_bytes)
    embeddings, names = embeddings_of(23)
    assert export_embeddings(embeddings, names, 11, tmp_path / "vectors", form) == 23
    assert np.array_equal(read(tmp_path / "vectors", form), embeddings.vectors)
    assert sorted(path.name for path in tmp_path.iterdir()) == [ENTITY_LIST, "vectors"]
    assert not caplog.records


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_a_vector_are_marked(form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embeddings, names = embeddings_of(6, uncovered=(1, 5))
    export_embeddings(embeddings, names, 3, tmp_path / "vectors", form)
    vectors = read(tmp_path / "vectors", form)
    assert np.flatnonzero(~vectors.any(axis=1)).tolist() == [1, 5]
    assert np.array_equal(vectors[embeddings.covered], embeddings.vectors[embeddings.covered])
    lines = (tmp_path / ENTITY_LIST).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id\tside\tname\tcovered"
    assert [line.split("\t")[0] for line in lines[1:]] == ["0", "1", "2", "3", "4", "5"]
    assert [line.split("\t")[1] for line in lines[1:]] == ["source"] * 3 + ["target"] * 3
    assert [line.split("\t")[3] for line in lines[1:]] == ["true", "false", "true", "true", "true", "false"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "2 of 6 entities have no vector" in record.getMessage()


def test_the_safetensors_file_says_what_it_holds(tmp_path: Path) -> None:
    embeddings, names = embeddings_of(6, uncovered=(1,))
    export_embeddings(embeddings, names, 3, tmp_path / "v.safetensors", FORMS[0])
    assert load_file(tmp_path / "v.safetensors")["covered"].tolist() == embeddings.covered.tolist()
    with safe_open(tmp_path / "v.safetensors", "numpy") as file:
        assert file.metadata() == {"entities": ENTITY_LIST, "num_source_entities": "3"}


def test_every_name_is_one_line(tmp_path: Path) -> None:
    embeddings, names = embeddings_of(len(NASTY))
    export_embeddings(embeddings, names, 0, tmp_path / "v.npy", "embeddings-npy")
    lines = (tmp_path / ENTITY_LIST).read_bytes().removesuffix(b"\n").split(b"\n")
    assert [len(line.split(b"\t")) for line in lines] == [4] * (len(NASTY) + 1)


@pytest.mark.parametrize("form", FORMS)
def test_mapped_vectors_and_none_at_all(form: str, tmp_path: Path) -> None:
    np.save(tmp_path / "mapped.npy", embeddings_of(9)[0].vectors)
    mapped = EntityEmbeddings(np.load(tmp_path / "mapped.npy", mmap_mode="r"), np.ones(9, dtype=bool))
    export_embeddings(mapped, embeddings_of(9)[1], 4, tmp_path / "vectors", form)
    assert np.array_equal(read(tmp_path / "vectors", form), mapped.vectors)
    none, no_names = embeddings_of(0)
    assert export_embeddings(none, no_names, 0, tmp_path / "none", form) == 0
    assert read(tmp_path / "none", form).shape == (0, 5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("num_bytes", [0, 100, 2000])
def test_a_full_disk_leaves_nothing(form: str, num_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_after(monkeypatch, num_bytes)
    embeddings, names = embeddings_of(100)
    with pytest.raises(StorageError, match="No space left on device"):
        export_embeddings(embeddings, names, 50, tmp_path / "vectors", form)
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(tmp_path: Path) -> None:
    embeddings, names = embeddings_of(4)
    with pytest.raises(InputError, match=r"(?s)'npz'.*embeddings-safetensors, embeddings-npy"):
        export_embeddings(embeddings, names, 2, tmp_path / "v", "npz")
    with pytest.raises(InputError, match="overwrite their entity list"):
        export_embeddings(embeddings, names, 2, tmp_path / ENTITY_LIST, "embeddings-npy")
    with pytest.raises(ArtifactError, match="do not fit"):
        export_embeddings(embeddings, embeddings_of(3)[1], 2, tmp_path / "v", "embeddings-npy")
    with pytest.raises(ArtifactError, match="do not fit"):
        export_embeddings(embeddings, names, 5, tmp_path / "v", "embeddings-npy")
    assert list(tmp_path.iterdir()) == []
