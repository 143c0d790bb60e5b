"""Keep models that are built for ONNX Runtime in the cache folder.

    <cache folder>/models/<model>/   model.onnx  tokenizer.json  manifest.json  verified.json

The manifest holds the SHA-256 of both files and of itself. Hashing a model takes a tenth of a
second, so `verified.json` records the size and the modification time of each file that passed the
check. A file is hashed again only when one of these differs.

A complete folder gets its name in one step. A process that is killed half-way leaves only a
`.partial-…` folder. If two processes build the same model at once, the first result is kept.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from byheart.embedding.model_sources import (
    DEFAULT_MODEL,
    PINNED_SHA256,
    ModelSources,
    sha256_of,
)
from byheart.embedding.progress import Progress
from byheart.embedding.sentence_model import WEIGHTS, SentenceModel, read_sentence_model
from byheart.errors import EmbedderUnavailable, EmbeddingError, Hint, ModelFilesError
from byheart.startup.dataclass_types import dataclass

# Increase this number when the graph changes: models built by an older version are then rebuilt.
BUILD = 4
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"
VERIFIED = "verified.json"
PARTIAL_PREFIX = ".partial-"
ABANDONED_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class CachedModel:
    """Describe a cached model that is ready to load."""

    name: str
    folder: Path
    shape: SentenceModel

    @property
    def graph(self) -> Path:
        """Return the path of the ONNX graph."""
        return self.folder / GRAPH

    @property
    def tokenizer(self) -> Path:
        """Return the path of the tokenizer."""
        return self.folder / TOKENIZER

    @property
    def size_bytes(self) -> int:
        """Return the size of the model's folder in bytes."""
        return sum(path.stat().st_size for path in self.folder.iterdir())


def find_model(model: str, cache_dir: Path) -> CachedModel | None:
    """Return the model if the cache holds a complete, undamaged and current copy."""
    folder = _folder_of(model, cache_dir)
    try:
        manifest = _read_manifest(folder)
        current = manifest["build"] == BUILD and manifest["origin"] == _origin(model)
        if current and not _damaged(folder, manifest):
            return CachedModel(manifest["name"], folder, SentenceModel(**manifest["shape"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # the model is missing or damaged and must be built
    return None


def damage_of(model: str, cache_dir: Path, *, every_byte: bool = False) -> list[str]:
    """Name the files of a cached model that are missing, unreadable or changed since the build.

    The list is empty for a model that was never cached. With `every_byte`, also hash the files that
    were verified before.
    """
    folder = _folder_of(model, cache_dir)
    if not folder.is_dir():
        return []
    try:
        return _damaged(folder, _read_manifest(folder), every_byte=every_byte)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [MANIFEST]


def _read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    # Manifests of older versions have no checksum and are accepted without one.
    if "check" in manifest and manifest["check"] != _check_of(manifest):
        raise ValueError("the manifest is damaged")
    return manifest


def _check_of(manifest: dict[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != "check"}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# The files that this process has verified, for caches on read-only disks.
_verified_here: dict[Path, list[int]] = {}


def _damaged(folder: Path, manifest: dict[str, Any], *, every_byte: bool = False) -> list[str]:
    """Name the files that changed since the build; hash only files that are not yet verified."""
    marks = {} if every_byte else _read_marks(folder)
    damaged, seen = [], {}
    for name in (GRAPH, TOKENIZER):
        path, record = folder / name, manifest["files"][name]
        try:
            seen[name] = mark = _mark_of(path)
            known = not every_byte and mark in (marks.get(name), _verified_here.get(path))
            right = mark[0] == record["bytes"] and (known or sha256_of(path) == record["sha256"])
        except OSError:
            right = False
        if not right:
            damaged.append(name)
    if not damaged and marks != seen:
        _verified_here.update({folder / name: mark for name, mark in seen.items()})
        _write_marks(folder, seen)
    return damaged


def forget_verified(model: str, cache_dir: Path) -> None:
    """Force the files of a model to be hashed again at the next lookup."""
    folder = _folder_of(model, cache_dir)
    for name in (GRAPH, TOKENIZER):
        _verified_here.pop(folder / name, None)
    with suppress(OSError):
        (folder / VERIFIED).unlink(missing_ok=True)


def _mark_of(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]


def _read_marks(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        marks = json.loads((folder / VERIFIED).read_text(encoding="utf-8"))
        if isinstance(marks, dict):
            return marks
    return {}


def _write_marks(folder: Path, marks: dict[str, list[int]]) -> None:
    # The marks only save time: if they cannot be written, each process hashes the files once.
    from tempfile import mkstemp

    with suppress(OSError):
        handle, name = mkstemp(prefix=PARTIAL_PREFIX, dir=folder)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(marks, file)
            temporary.replace(folder / VERIFIED)
        finally:
            temporary.unlink(missing_ok=True)


def get_model(
    model: str, cache_dir: Path, sources: ModelSources, progress: Progress
) -> CachedModel:
    """Return the model from the cache; fetch and build it first if needed."""
    if cached := find_model(model, cache_dir):
        return cached
    damaged = damage_of(model, cache_dir)
    with _workspace(cache_dir / "models") as workspace:
        try:
            source = sources.fetch(model, workspace, progress)
        except EmbeddingError as error:
            if not damaged:
                raise
            raise EmbedderUnavailable(
                Hint(
                    f"the model in {_folder_of(model, cache_dir)} is damaged "
                    f"({', '.join(damaged)}), and ",
                    error.message,
                ),
                error.hint,
            ) from error
        built = _build(model, source, workspace / "built")
        if not find_model(model, cache_dir):  # another process may have been faster
            _publish(built, _folder_of(model, cache_dir), workspace)
    if cached := find_model(model, cache_dir):
        return cached
    raise ModelFilesError(
        f"the model {model} was built but cannot be found again in {cache_dir}",
        "check that no other program clears this folder, or choose another: setting cache_dir",
    )


def install_built(model: str, cache_dir: Path, unpack: Callable[[Path], None]) -> None:
    """Put a model that was built elsewhere into the cache, if `unpack` writes an undamaged one."""
    with _workspace(cache_dir / "models") as workspace:
        built = workspace / "built"
        unpack(built)
        manifest = _read_manifest(built)
        if damaged := _damaged(built, manifest, every_byte=True):
            raise ModelFilesError(f"{', '.join(damaged)} of {model} is damaged", "copy it again")
        _publish(built, _folder_of(model, cache_dir), workspace)
    if find_model(model, cache_dir) is None:
        raise ModelFilesError(f"the model {model} does not suit this version", "pack it again")


def remove_model(model: str, cache_dir: Path) -> None:
    """Remove a model from the cache, so that the next use fetches and builds it again."""
    with _workspace(cache_dir / "models") as workspace:
        _move_away(_folder_of(model, cache_dir), workspace)


def _folder_of(model: str, cache_dir: Path) -> Path:
    label = re.sub(r"[^A-Za-z0-9.-]+", "_", model).strip("_")
    if (path := Path(model).expanduser()).is_dir():
        label = f"{path.name}-{sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    return cache_dir / "models" / label


def _origin(model: str) -> list[int]:
    """Return the size and time of the weights in a user's own model folder, to notice changes."""
    weights = Path(model).expanduser() / WEIGHTS
    if not weights.is_file():
        return []
    state = weights.stat()
    return [state.st_size, state.st_mtime_ns]


def _build(model: str, source: Path, target: Path) -> Path:
    """Build the graph, and write it with its tokenizer and manifest into the target folder."""
    # Only this function needs these modules, and most processes never build a graph.
    from shutil import copyfile

    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from byheart.embedding.bert_graph import build_graph

    shape = read_sentence_model(source, model)
    try:
        weights = load_file(source / WEIGHTS)
    except SafetensorError as error:
        raise ModelFilesError(
            f"the weights in {source / WEIGHTS} cannot be read: {error}",
            "get the model's files again",
        ) from None
    target.mkdir()
    (target / GRAPH).write_bytes(build_graph(weights, shape, "int8"))
    copyfile(source / TOKENIZER, target / TOKENIZER)
    manifest: dict[str, Any] = {
        "build": BUILD,
        "name": _name_of(model, source),
        "origin": _origin(model),
        "shape": asdict(shape),
        "files": {name: _record_of(target / name) for name in (GRAPH, TOKENIZER)},
    }
    manifest["check"] = _check_of(manifest)
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    _write_marks(target, {name: _mark_of(target / name) for name in (GRAPH, TOKENIZER)})
    return target


def _record_of(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _name_of(model: str, source: Path) -> str:
    """Name the model after its weights, since two sets of weights may share a label."""
    weights = sha256_of(source / WEIGHTS)
    if weights == PINNED_SHA256[WEIGHTS]:
        return f"{DEFAULT_MODEL.rpartition('/')[2]}-int8"
    return f"{Path(model).name}@{weights[:8]}-int8"


@contextmanager
def _workspace(models: Path) -> Iterator[Path]:
    """Open a temporary folder next to the models; remove the folders that killed runs left."""
    import shutil
    import tempfile

    try:
        models.mkdir(parents=True, exist_ok=True)
        for left in models.glob(f"{PARTIAL_PREFIX}*"):
            if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        workspace = tempfile.TemporaryDirectory(
            prefix=PARTIAL_PREFIX, dir=models, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise _unwritable(models, error) from None
    with workspace as folder:
        try:
            yield Path(folder)
        except OSError as error:
            raise _unwritable(models, error) from None


def _unwritable(models: Path, error: OSError) -> ModelFilesError:
    return ModelFilesError(
        f"no model can be written to {models}: {error}",
        "free some space, or set BYHEART_CACHE_DIR to a folder that can be written",
    )


def _publish(built: Path, folder: Path, workspace: Path) -> None:
    _move_away(folder, workspace)
    try:
        built.replace(folder)
    except OSError:
        # Another process was faster, and its model is the same as this one.
        if not folder.is_dir():
            raise


def _move_away(folder: Path, workspace: Path) -> None:
    """Move a folder into the workspace, which is removed later together with the folder."""
    with suppress(FileNotFoundError):
        folder.replace(workspace / "old")
