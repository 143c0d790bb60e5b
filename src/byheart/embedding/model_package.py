"""Carry a model to a machine without a hub: pack it into one file here, install it there.

The file is a zip archive, without compression, of the three files that the cache keeps, and of
`package.json` with the model's label. The manifest has the size and the SHA-256 of the others.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from byheart.embedding.model_cache import (
    BUILD,
    GRAPH,
    MANIFEST,
    TOKENIZER,
    find_model,
    install_built,
)
from byheart.embedding.model_sources import DEFAULT_MODEL, PINNED_SHA256, sha256_of
from byheart.errors import Do, Hint, InvalidInput, ModelFilesError, Placeholder

PACKAGE = "package.json"
FORMAT = 1
_FILES = (GRAPH, TOKENIZER, MANIFEST)
# A package tells how large its files are; a wrong one must not fill memory or disk.
_MOST_BYTES_OF_JSON = 1_000_000
_MOST_BYTES = 20_000_000_000


def pack_model(model: str, cache_dir: Path, path: Path) -> str:
    """Write a model of the cache into a file, and return the file's SHA-256."""
    cached = find_model(model, cache_dir)
    if cached is None:
        raise ModelFilesError(
            f"the model {model} is not in the cache", Hint("get it with: ", Do("model download"))
        )
    if Path(model).expanduser().is_dir():
        raise InvalidInput(
            f"{model} is a folder of your own",
            "copy the folder itself, and name it on the other machine: setting model_path",
        )
    try:
        handle, name = tempfile.mkstemp(prefix=path.name, dir=path.absolute().parent)
        partial = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                _write(file, model, cached.folder)
            packed = sha256_of(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}", "name a file in another folder"
        ) from error
    return packed


def _write(file: BinaryIO, model: str, folder: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(PACKAGE, json.dumps({"format": FORMAT, "model": model}))
        for name in _FILES:
            archive.write(folder / name, name)


def install_model(path: Path, cache_dir: Path, sha256: str | None = None) -> str:
    """Install a packed model into the cache, and return its label.

    With `sha256`, refuse a file with another checksum.
    """
    try:
        if sha256 is not None and (found := sha256_of(path)) != sha256.strip().lower():
            raise ModelFilesError(
                f"{path} has the SHA-256 {found}, not {sha256}",
                "copy the file again, or check the checksum",
            )
        with zipfile.ZipFile(path) as archive:
            label = _read_label(archive, path)
            manifest = _read_json(archive, MANIFEST)
            _check(manifest, label, path)

            def unpack(target: Path) -> None:
                target.mkdir()
                for name in _FILES:
                    with archive.open(name) as source, (target / name).open("wb") as file:
                        shutil.copyfileobj(source, file)

            install_built(label, cache_dir, unpack)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror or error}", "check the path"
        ) from error
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, NotImplementedError) as error:
        raise _no_package(path) from error
    return label


def _read_label(archive: zipfile.ZipFile, path: Path) -> str:
    package = _read_json(archive, PACKAGE)
    if package["format"] != FORMAT:
        raise ModelFilesError(
            f"{path} has format {package['format']}, and this version reads {FORMAT}",
            "pack the model again with the same version of Byheart",
        )
    label = package["model"]
    # The label becomes the name of a folder of the cache.
    if not isinstance(label, str) or not label or Path(label).is_absolute() or ".." in label:
        raise _no_package(path)
    return label


def _check(manifest: dict[str, Any], label: str, path: Path) -> None:
    if manifest["build"] != BUILD:
        raise ModelFilesError(
            f"the model in {path} was built by another version of Byheart",
            "pack it again with the version that is installed here",
        )
    if sum(int(each["bytes"]) for each in manifest["files"].values()) > _MOST_BYTES:
        raise _no_package(path)
    if (
        label == DEFAULT_MODEL
        and manifest["files"][TOKENIZER]["sha256"] != PINNED_SHA256[TOKENIZER]
    ):
        raise ModelFilesError(
            f"the tokenizer in {path} is not that of {label}", "get the file from its maker again"
        )


def _read_json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MOST_BYTES_OF_JSON:
        raise ValueError(f"{name} is too large")
    read = json.loads(archive.read(name))
    if not isinstance(read, dict):
        raise TypeError(f"{name} is no object")
    return read


def _no_package(path: Path) -> ModelFilesError:
    return ModelFilesError(
        f"{path} is no packed model, or it is damaged",
        Hint("make one on a machine that has the model: ", Do("model pack", Placeholder("FILE"))),
    )
