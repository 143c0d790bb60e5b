"""Read the settings from their layers: defaults, file, environment, overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byheart.errors import Do, Hint, SettingsError
from byheart.model.address_secrets import has_secret, hide_secrets
from byheart.settings.config_file import (
    CONFIG_VARIABLE,
    FILE_TABLE,
    default_config_path,
    parse_toml,
    read_text,
)
from byheart.settings.setting_types import Given
from byheart.settings.table import PREFIX, RULES, Settings, variable_of
from byheart.startup.dataclass_types import dataclass

HIDDEN = "set (hidden)"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """Describe one setting as `config list` shows it: paths as text, secrets hidden."""

    key: str
    value: object
    source: str
    default: object
    doc: str


def load_settings(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config_path: Path | None = None,
) -> Settings:
    """Read the settings: `overrides` win over the environment, the file, and the defaults."""
    return resolve(_gather(overrides, environ, config_path))


def describe_settings(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config_path: Path | None = None,
) -> tuple[SettingRow, ...]:
    """List every setting with its value, the value's source, its default and its meaning."""
    given = _gather(overrides, environ, config_path)
    settings, defaults = resolve(given), Settings()
    return tuple(
        SettingRow(
            key,
            _showable(key, getattr(settings, key)),
            given[key].source if key in given else "default",
            _showable(key, getattr(defaults, key)),
            rule.doc,
        )
        for key, rule in RULES.items()
    )


def overruled_settings(
    environ: Mapping[str, str] | None = None, config_path: Path | None = None
) -> dict[str, str]:
    """Find settings of the file that a variable overrides, each with the name of the variable."""
    variables = os.environ if environ is None else environ
    path = config_path or default_config_path(variables)
    in_file, around = _from_file(path, variables), from_environment(variables)
    return {
        key: around[key].source.removeprefix("environment ")
        for key in in_file
        if key in around and parse_value(key, in_file[key]) != parse_value(key, around[key])
    }


def holds_secrets(path: Path) -> bool:
    """Return whether a config file sets a secret."""
    try:
        held = _from_file(path, os.environ)
        return any(is_secret(key, given.raw) for key, given in held.items())
    except SettingsError:
        return False


def unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Find `BYHEART_*` variables that are no setting, each with the most similar one, or "".

    These variables are no error, because other programs may use the prefix too.
    """
    known = {CONFIG_VARIABLE, *map(variable_of, RULES)}
    found = {}
    for name in sorted(os.environ if environ is None else environ):
        if name.startswith(PREFIX) and name not in known:
            # Compare without the prefix, which would make any two names similar.
            nearest = _nearest(name.removeprefix(PREFIX))
            found[name] = variable_of(nearest) if nearest else ""
    return found


def _showable(key: str, value: object) -> object:
    if RULES[key].secret and value is not None:
        return HIDDEN
    if isinstance(value, str | Path):
        return hide_secrets(str(value))
    return value


def is_secret(key: str, value: object) -> bool:
    """Tell whether a value may be read by its owner alone: a key, or an address with a password."""
    rule = RULES[key]
    return rule.secret or (rule.has_address and has_secret(str(value)))


def _gather(
    overrides: Mapping[str, object] | None,
    environ: Mapping[str, str] | None,
    config_path: Path | None,
) -> dict[str, Given]:
    """Collect the given value of each setting from the strongest layer that has one."""
    variables = os.environ if environ is None else environ
    path = config_path or default_config_path(variables)
    return {
        **_from_file(path, variables),
        **from_environment(variables),
        **_from_overrides(overrides or {}, variables),
    }


def _from_file(path: Path, environ: Mapping[str, str]) -> dict[str, Given]:
    return from_text(read_text(path), path, environ)


def from_text(text: str, path: Path, environ: Mapping[str, str]) -> dict[str, Given]:
    """Collect the settings in the text of a config file."""
    document = parse_toml(text, path) if text else {}
    table = document.pop(FILE_TABLE, {})
    source = f"file {path}"
    if not isinstance(table, dict):
        raise SettingsError(
            f"{FILE_TABLE} in {path} is not a table", f"write [{FILE_TABLE}] on a line of its own"
        )
    for key, value in (*document.items(), *table.items()):
        if key not in RULES:
            raise SettingsError(f"there is no setting {key!r} ({source})", _how_to_drop(key, value))
    for key in document.keys() & table.keys():
        raise SettingsError(
            f"{key} is set twice in {path}: above all tables and in [{FILE_TABLE}]",
            "remove one of the two",
        )
    folder = path.absolute().parent
    return {key: Given(raw, source, folder, environ) for key, raw in (document | table).items()}


def from_environment(environ: Mapping[str, str]) -> dict[str, Given]:
    """Collect the settings that variables of the environment give."""
    given = {}
    for key, rule in RULES.items():
        for name in (variable_of(key), rule.also_variable):
            # An empty variable counts as unset, as in `NAME=${OTHER:-}` in a compose file.
            if environ.get(name):
                given[key] = Given(environ[name], f"environment {name}", Path(), environ)
                break
    return given


def _from_overrides(
    overrides: Mapping[str, object], environ: Mapping[str, str]
) -> dict[str, Given]:
    given = {}
    for key, raw in overrides.items():
        require_known(key, "flag")
        if raw is not None:
            given[key] = Given(raw, "flag", Path(), environ)
    return given


def resolve(given: Mapping[str, Given]) -> Settings:
    """Check the given values together, and fill in the defaults."""
    values: dict[str, Any] = {key: parse_value(key, each) for key, each in given.items()}
    chunk_tokens = values.get("chunk_tokens", Settings().chunk_tokens)
    if "overlap_tokens" not in values:
        # For small chunks, reduce the default overlap to a fifth of the chunk.
        values["overlap_tokens"] = min(Settings().overlap_tokens, chunk_tokens // 5)
    if values["overlap_tokens"] >= chunk_tokens:
        raise SettingsError(
            f"overlap_tokens is {values['overlap_tokens']}, not less than chunk_tokens, "
            f"which is {chunk_tokens}",
            f"set overlap_tokens to about {chunk_tokens // 5}",
        )
    settings = Settings(**values)
    if not any(settings.recall_weights):
        raise SettingsError(
            "all four recall weights are 0", "set one of them, such as recall_relevance_weight = 1"
        )
    return settings


def parse_value(key: str, given: Given) -> object:
    """Read the value of a setting, or refuse it with its source and the allowed values."""
    rule = RULES[key]
    try:
        return rule.parse(given)
    except ValueError as error:
        shown = HIDDEN if rule.secret else repr(_showable(key, given.raw))
        reason = f": {error}" if error.args else ""
        raise SettingsError(
            f"{key} = {shown} is not allowed ({given.source}){reason}", f"{key} is {rule.allowed}"
        ) from error


def require_known(key: str, source: str) -> None:
    """Refuse a key that is no setting, and suggest the most similar setting."""
    if key in RULES:
        return
    nearest = _nearest(key)
    every = Hint("see every setting with: ", Do("config list"))
    hint = f"did you mean {nearest}?" if nearest else every
    raise SettingsError(f"there is no setting {key!r} ({source})", hint)


def _how_to_drop(key: str, value: object) -> str:
    """Describe how to remove a key from the file, since no other command works before that."""
    nearest = _nearest(key)
    meant = f"did you mean {nearest}? " if nearest else ""
    if isinstance(value, dict):
        return f"{meant}take the table {key} out of the file"
    return Hint(f"{meant}take it out with: ", Do("config unset", key))


def _nearest(key: str) -> str:
    import difflib

    close = difflib.get_close_matches(key.lower().replace("-", "_"), RULES, n=1)
    return close[0] if close else ""
