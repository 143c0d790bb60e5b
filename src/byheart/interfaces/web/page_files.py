"""Read the files of the page, and put a digest of all of them into their addresses.

A browser may keep a file for ever, because a changed file has another address. All files are read
once: an upgrade of the package does not mix with the server that still runs. The styles are sent as
one file, because a browser paints nothing before it has all of them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from byheart.startup.dataclass_types import dataclass

SHELL, LOGIN_PAGE = "index.html", "login/login.html"
# The only folder whose files need no login.
OPEN_FOLDER = "login/"
# Later styles win over earlier ones.
STYLES = ("tokens", "base", "parts", "screens", "history", "overview")
JOINED_STYLES, _STYLES_FOLDER = "page.css", "styles/"
# An HTML file names the folder of the other files by this word.
_FOLDER = b"{{static}}"
_DIGEST_CHARS = 16
_TYPES: Mapping[str, str] = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "mjs": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, as it is sent: `packed` with gzip, if the browser accepts that."""

    body: bytes
    packed: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class PageFiles:
    """All files of the page by their paths, and the digest of all of them."""

    digest: str
    by_path: Mapping[str, PageFile]


@cache
def read_page_files() -> PageFiles:
    """Read the files of the package; a file of a type that the page does not use is left out."""
    root = files("byheart.interfaces.web").joinpath("static")
    read = {path: each.read_bytes() for path, each in sorted(_walk(root)) if _type_of(path)}
    styles = [read[f"{_STYLES_FOLDER}{name}.css"] for name in STYLES]
    bodies = {path: body for path, body in read.items() if not path.startswith(_STYLES_FOLDER)}
    bodies[JOINED_STYLES] = b"".join(styles)
    hashed = sha256()
    for path, body in bodies.items():
        hashed.update(f"{path}\0{len(body)}\0".encode() + body)
    digest = hashed.hexdigest()[:_DIGEST_CHARS]
    return PageFiles(
        digest, {path: _make_file(path, body, digest) for path, body in bodies.items()}
    )


def _walk(folder: Traversable, above: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{above}{each.name}/")
        else:
            yield f"{above}{each.name}", each


def _make_file(path: str, body: bytes, digest: str) -> PageFile:
    if path.endswith(".html"):
        body = body.replace(_FOLDER, f"/web/{digest}/".encode())
    etag = f'"{sha256(body).hexdigest()[:_DIGEST_CHARS]}"'
    return PageFile(body, gzip.compress(body, mtime=0), _type_of(path), etag)


def _type_of(path: str) -> str:
    return _TYPES.get(path.rpartition(".")[2], "")
