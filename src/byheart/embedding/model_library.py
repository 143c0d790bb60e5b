"""Download, check and describe cached models for setup, status and doctor."""

from __future__ import annotations

from pathlib import Path

from byheart.embedding.model_cache import damage_of, find_model, get_model, remove_model
from byheart.embedding.model_sources import DEFAULT_MODEL, ModelSources
from byheart.embedding.progress import Progress
from byheart.errors import Do, EmbeddingError, Hint
from byheart.model import Finding
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Describe a model without loading it; `problem` says why the model is not ready."""

    model: str
    ready: bool
    name: str | None = None
    folder: Path | None = None
    size_bytes: int = 0
    dimensions: int | None = None
    problem: str | None = None
    damaged: tuple[str, ...] = ()


def model_label(model: str | None, model_path: Path | None = None) -> str:
    """Return the folder or hub id that a setting means; a bare name is sentence-transformers'."""
    if model_path is not None:
        return str(model_path)
    if not model:
        return DEFAULT_MODEL
    if "/" in model or Path(model).is_dir():
        return model
    return f"sentence-transformers/{model}"


def download_model(
    model: str | None,
    cache_dir: Path,
    progress: Progress | None = None,
    *,
    sources: ModelSources | None = None,
    force: bool = False,
) -> ModelStatus:
    """Download a model into the cache, unless it is there; `force` downloads it in any case."""
    label = model_label(model)
    if force:
        remove_model(label, cache_dir)
    get_model(label, cache_dir, sources or ModelSources(), progress or (lambda _done, _total: None))
    return model_status(model, cache_dir)


def pack_model(model: str | None, cache_dir: Path, path: Path) -> str:
    """Write a model of the cache into one file, and return the file's SHA-256."""
    from byheart.embedding import model_package

    return model_package.pack_model(model_label(model), cache_dir, path)


def install_model(path: Path, cache_dir: Path, sha256: str | None = None) -> ModelStatus:
    """Install a model that `pack_model` wrote; with `sha256`, refuse any other file."""
    from byheart.embedding import model_package

    return model_status(model_package.install_model(path, cache_dir, sha256), cache_dir)


def model_status(model: str | None, cache_dir: Path, *, verify: bool = False) -> ModelStatus:
    """Report whether a model is in the cache; `verify` reads every byte of its files."""
    label = model_label(model)
    damaged = damage_of(label, cache_dir, every_byte=verify)
    cached = None if damaged else find_model(label, cache_dir)
    if cached is None:
        problem = f"damaged: {', '.join(damaged)}" if damaged else "it is not in the cache"
        return ModelStatus(label, ready=False, problem=problem, damaged=tuple(damaged))
    return ModelStatus(
        label,
        ready=True,
        name=cached.name,
        folder=cached.folder,
        size_bytes=cached.size_bytes,
        dimensions=cached.shape.dimensions,
    )


def examine_model(
    model: str | None,
    model_path: Path | None,
    cache_dir: Path,
    sources: ModelSources,
    *,
    fix: bool = False,
) -> Finding:
    """Check every byte of a model's files for the doctor; with `fix`, fetch damaged files again."""
    name = "model files"
    label = model_label(model, model_path)
    status = model_status(label, cache_dir, verify=True)
    if status.problem is None:
        return Finding(name, True, f"{status.name}, {status.size_bytes / 1e6:.1f} MB")
    message = f"{status.model}: {status.problem}"
    if not status.damaged:
        # Another check reports whether vectors can be made without this model.
        return Finding(name, True, message, Hint("get it with: ", Do("model download")))
    if not fix:
        return Finding(
            name, False, message, Hint("get it again with: ", Do("admin.doctor", fix=True))
        )
    try:
        get_model(label, cache_dir, sources, lambda _done, _total: None)
    except EmbeddingError as error:
        return Finding(name, False, error.message, error.hint)
    return Finding(name, True, f"fixed: {message}", fixed=True)
