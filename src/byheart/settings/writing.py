"""Write single settings into the config file, and remove them from it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from byheart.errors import Hint, SettingsError
from byheart.model.address_secrets import hide_secrets_in
from byheart.settings.config_file import (
    FILE_TABLE,
    default_config_path,
    parse_toml,
    read_text,
    write_atomically,
)
from byheart.settings.reading import (
    from_environment,
    from_text,
    is_secret,
    parse_value,
    require_known,
    resolve,
)
from byheart.settings.setting_types import Given, is_not_a_path
from byheart.settings.table import RULES


def set_setting(key: str, value: object, config_path: Path | None = None) -> Path:
    """Write one setting into the config file, and leave all other lines unchanged."""
    from byheart.system import toml_editing  # importing tomlkit takes longer than most commands

    path = config_path or default_config_path()
    require_known(key, "config set")
    parsed = parse_value(key, Given(value, "config set", Path(), os.environ))
    written = _written_form(key, value, parsed)
    text = read_text(path)
    table = () if key in parse_toml(text, path) else (FILE_TABLE,)
    try:
        edited = toml_editing.put_values(text, table, {key: written})
    except toml_editing.Uneditable:
        edited = text
    if _lookup(edited, key) != written:
        raise SettingsError(
            f"{path} is written in a way that cannot be edited safely",
            hide_secrets_in(f"write {key} = {toml_editing.literal(written)} into it yourself"),
        )
    _require_sound(edited, path)
    write_atomically(path, edited, private=is_secret(key, written))
    return path


def unset_setting(key: str, config_path: Path | None = None) -> bool:
    """Remove one setting from the config file, and return whether the file had it.

    A key that is no setting can be removed too, for example a misspelt one.
    """
    from byheart.system import toml_editing  # importing tomlkit takes longer than most commands

    path = config_path or default_config_path()
    text = read_text(path)
    parse_toml(text, path)
    if _lookup(text, key) is None:
        require_known(key, "config unset")
        return False
    edited = text
    with suppress(toml_editing.Uneditable):
        for place in ((key,), (FILE_TABLE, key)):
            edited = toml_editing.remove_value(edited, place)
    if _lookup(edited, key) is not None:
        raise SettingsError(f"{key} could not be removed from {path}", "edit the file by hand")
    if _is_sound(text, path):  # any key may be removed from a file that is invalid anyway
        _require_sound(edited, path)
    write_atomically(path, edited)
    return True


def _require_sound(text: str, path: Path) -> None:
    """Refuse a file text that would stop every command, in this or in another environment."""
    try:
        in_file = from_text(text, path, os.environ)
        resolve(in_file)
        resolve({**in_file, **from_environment(os.environ)})
    except SettingsError as error:
        raise SettingsError(
            Hint(error.message, "; the file was left as it is"), error.hint
        ) from error


def _is_sound(text: str, path: Path) -> bool:
    try:
        _require_sound(text, path)
    except SettingsError:
        return False
    return True


def _lookup(text: str, key: str) -> object:
    """Return the value of a setting in a file's text; a table is not a value."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    table = document.get(FILE_TABLE, {})
    value = document.get(key, table.get(key) if isinstance(table, dict) else None)
    return None if isinstance(value, dict) else value


def _written_form(key: str, raw: object, parsed: object) -> object:
    """Choose the text for the file: the typed text, if it has the same meaning there."""
    if not RULES[key].is_path:
        return "" if parsed is None else list(parsed) if isinstance(parsed, tuple) else parsed
    text = str(raw).strip()
    stays = not text or text[0] in "~$%" or is_not_a_path(text) or Path(text).is_absolute()
    # In the file, a relative path starts from the file's folder, not from the working folder.
    return text if stays else str(Path(text).absolute())
