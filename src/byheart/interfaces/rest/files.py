"""Keep all files that callers write inside one folder."""

from __future__ import annotations

import re
import tempfile
from hashlib import sha256
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, cast

from byheart.errors import InvalidInput, StoreUnreachable
from byheart.model.checks import LONGEST_OUTPUT_PATH
from byheart.system.private_files import make_private_folder

_LONGEST_NAME_BYTES = 255
_TO_QUOTE = re.compile(rb"[^a-z0-9_-]")


class FilesFolder:
    """Locate a caller's file inside the folder, whatever path the caller asks for.

    Every space has its own subfolder, and every session whose API keys write files has one in it:
    a caller cannot overwrite a file that it may not read.
    """

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = Path(store)

    def locate(self, output_path: object, space: str, session_id: str | None) -> Path:
        """Return where a file would be located; create and write nothing."""
        own = self._folder.resolve().joinpath(*map(_quoted, filter(None, (space, session_id))))
        relative = _check_relative(output_path)
        place = (own / relative).resolve()  # follows every link on the way
        if not place.is_relative_to(own) or place == own:
            raise _outside(output_path)
        if self._is_of_the_store(place):
            raise InvalidInput(f"{relative} is a file of the store itself", "choose another name")
        if place.exists() and not place.is_file():
            raise InvalidInput(f"{relative} is not a plain file", "choose another name")
        return place

    def name(self, place: Path) -> str:
        """Return the path of a file relative to the folder."""
        return place.relative_to(self._folder.resolve()).as_posix()

    def make_room(self, place: Path) -> None:
        """Create the parent folders of a file that was located."""
        above = self.name(place.parent)
        try:
            make_private_folder(place.parent)
        except (FileExistsError, NotADirectoryError) as error:
            raise InvalidInput(f"{above} is a file, not a folder", "choose another name") from error
        except OSError as error:
            raise StoreUnreachable(
                f"cannot make the folder {above} in files_dir: {error.strerror}",
                "name another in the setting files_dir",
            ) from error
        if place.parent.resolve() != place.parent:  # a link was created since `locate`
            raise _outside(place.name)

    def open_unnamed(self) -> BinaryIO:
        """Open a new file that has no name in the folder, and is gone when it is closed."""
        make_private_folder(self._folder)
        return cast("BinaryIO", tempfile.TemporaryFile(dir=self._folder))

    def _is_of_the_store(self, place: Path) -> bool:
        # A store's file must not be opened here, not even to refuse it: closing it would release
        # the locks that SQLite holds on it.
        store = self._store.resolve()
        return place.parent == store.parent and place.name.startswith(store.name)


def _check_relative(output_path: object) -> PurePosixPath:
    if not isinstance(output_path, str) or not output_path.strip():
        raise InvalidInput("output_path must be text that names a file", "give notes/today.md")
    if not output_path.isprintable():
        raise InvalidInput("output_path has a control character", "use visible characters only")
    path = PurePosixPath(output_path)
    windows = PureWindowsPath(output_path)
    if path.is_absolute() or windows.drive or windows.root or "\\" in output_path:
        raise _outside(output_path)
    if ".." in path.parts or path.parts[:1] == ("~",) or output_path.startswith("~"):
        raise _outside(output_path)
    try:
        longest = max(len(part.encode()) for part in path.parts)
    except (UnicodeEncodeError, ValueError):  # a lone surrogate; no part at all, as in "."
        raise InvalidInput(
            f"output_path {output_path!r} names no file", "give notes/today.md"
        ) from None
    if longest > _LONGEST_NAME_BYTES or len(output_path) > LONGEST_OUTPUT_PATH:
        raise InvalidInput("output_path is too long", "shorten it")
    return path


def _quoted(name: str) -> str:
    """Make a folder's name of any label; names stay distinct on a disk that ignores case."""
    quoted = _TO_QUOTE.sub(lambda found: b"%%%02x" % found[0][0], name.encode()).decode()
    if len(quoted) <= _LONGEST_NAME_BYTES:
        return quoted
    return f"%%{sha256(name.encode()).hexdigest()}"  # no quoted name begins like this


def _outside(output_path: object) -> InvalidInput:
    return InvalidInput(
        f"output_path {output_path!r} leads out of the folder for files",
        "give a path inside of it, such as notes/today.md: no / in front, no .., no links",
    )
