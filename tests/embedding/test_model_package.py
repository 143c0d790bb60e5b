"""A model is carried to a machine without a hub in one file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from byheart.embedding.model_cache import GRAPH, MANIFEST, TOKENIZER, find_model, get_model
from byheart.embedding.model_package import PACKAGE, install_model, pack_model
from byheart.embedding.model_sources import DEFAULT_MODEL, ModelSources, sha256_of
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.errors import ByheartError, InvalidInput, ModelFilesError

LABEL = "intfloat/e5-tiny"


@pytest.fixture
def packed(tmp_path, write_tiny_model):
    """Pack a model that has a label, as one from the hub."""
    folder = write_tiny_model(tmp_path / "e5-tiny")
    cache = tmp_path / "here"
    built = get_model(str(folder), cache, ModelSources(()), lambda _done, _total: None)
    named = cache / "models" / "intfloat_e5-tiny"
    built.folder.rename(named)
    manifest = json.loads((named / MANIFEST).read_text())
    manifest["origin"] = []
    del manifest["check"]
    (named / MANIFEST).write_text(json.dumps(manifest))
    path = tmp_path / "model.zip"
    digest = pack_model(LABEL, cache, path)
    assert digest == sha256_of(path)
    return path


def change(path: Path, name: str, content: bytes) -> Path:
    """Write the package again with another content of one file."""
    changed = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for each in old.namelist():
            new.writestr(each, content if each == name else old.read(each))
    return changed


def test_a_packed_model_gives_the_same_vectors_elsewhere(packed, tmp_path):
    there = tmp_path / "there"
    assert install_model(packed, there, sha256_of(packed).upper()) == LABEL
    assert install_model(packed, there) == LABEL  # again does no harm
    offline = ModelSources((), offline=True)
    first, second = (
        OnnxEmbedder(LABEL, cache_dir=cache, sources=offline).embed_query("tea")
        for cache in (tmp_path / "here", there)
    )
    assert (first == second).all()


def test_a_package_with_another_checksum_is_refused(packed, tmp_path):
    with pytest.raises(ModelFilesError, match="not 1234"):
        install_model(packed, tmp_path / "there", "1234")
    assert find_model(LABEL, tmp_path / "there") is None


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
def test_a_changed_byte_is_refused_and_leaves_no_model(packed, tmp_path, name):
    with pytest.raises(ModelFilesError, match=f"{name} of {LABEL} is damaged"):
        install_model(change(packed, name, b"{}"), tmp_path / "there")
    assert list((tmp_path / "there" / "models").iterdir()) == []


def test_a_package_of_another_build_or_format_says_so(packed, tmp_path):
    with zipfile.ZipFile(packed) as archive:
        manifest = json.loads(archive.read(MANIFEST))
    older = json.dumps({**manifest, "build": 1}).encode()
    with pytest.raises(ModelFilesError, match="another version"):
        install_model(change(packed, MANIFEST, older), tmp_path / "there")
    later = json.dumps({"format": 2, "model": LABEL}).encode()
    with pytest.raises(ModelFilesError, match="format 2"):
        install_model(change(packed, PACKAGE, later), tmp_path / "there")


def test_the_default_model_has_its_own_tokenizer(packed, tmp_path):
    named = json.dumps({"format": 1, "model": DEFAULT_MODEL}).encode()
    with pytest.raises(ModelFilesError, match="is not that of"):
        install_model(change(packed, PACKAGE, named), tmp_path / "there")


@pytest.mark.parametrize("label", ["/etc/x", "../x", "", 7])
def test_a_label_that_is_no_name_is_refused(packed, tmp_path, label):
    named = json.dumps({"format": 1, "model": label}).encode()
    with pytest.raises(ModelFilesError, match="no packed model"):
        install_model(change(packed, PACKAGE, named), tmp_path / "there")


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04"])
def test_a_file_that_is_no_package_is_refused(content, tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes(content)
    with pytest.raises(ByheartError, match="no packed model"):
        install_model(path, tmp_path / "there")
    with pytest.raises(InvalidInput, match="cannot be read"):
        install_model(tmp_path / "gone.zip", tmp_path / "there")


def test_only_a_cached_model_with_a_label_is_packed(tmp_path, write_tiny_model):
    with pytest.raises(ModelFilesError, match="not in the cache"):
        pack_model(LABEL, tmp_path / "cache", tmp_path / "model.zip")
    own = write_tiny_model(tmp_path / "own")
    get_model(str(own), tmp_path / "cache", ModelSources(()), lambda _done, _total: None)
    with pytest.raises(InvalidInput, match="folder of your own"):
        pack_model(str(own), tmp_path / "cache", tmp_path / "model.zip")
    assert not (tmp_path / "model.zip").exists()
