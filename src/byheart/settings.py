"""Read and write the settings; no other module reads the environment or the config file.

Each setting is declared once, as a field of `Settings`. Its parsing, its variable
`BYHEART_<KEY>`, its validation and its line in docs/settings.md all derive from this field.
"""

# ruff: noqa: RUF009 - the calls in the class body of Settings return dataclasses.field()

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import platformdirs

from byheart.errors import Do, Hint, SettingsError
from byheart.system.file_opening import read_to_end
from byheart.system.private_files import FILE_MODE, make_private_folder

EmbeddingProvider = Literal["auto", "onnx", "ollama", "openai", "hash", "none"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
ModelSource = Literal["hub", "wheel"]
RedactSecrets = Literal["none", "hooks", "captured", "all"]

PREFIX = "BYHEART_"
CONFIG_VARIABLE = "BYHEART_CONFIG"
FILE_TABLE = "memory"
HIDDEN = "set (hidden)"

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]*:)\S*@")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)" + (r"|%(\w+)%" if os.name == "nt" else ""))


class _Given(NamedTuple):
    """Hold a value as written, its source, and the folder where its relative paths start."""

    raw: object
    source: str
    folder: Path
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """Describe the meaning and the allowed values of a setting, in the metadata of its field."""

    doc: str
    allowed: str
    parse: Callable[[_Given], object]
    default_text: str = ""
    secret: bool = False
    also_variable: str = ""
    is_path: bool = False


# --- Types of settings ------------------------------------------------------------------------


def _setting(default: object, rule: Rule) -> Any:
    metadata = {"rule": rule}
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=not rule.secret)
    return field(default=default, metadata=metadata, repr=not rule.secret)


def _flag(default: bool, doc: str, also_variable: str = "") -> Any:
    def parse(given: _Given) -> bool:
        word = str(given.raw).strip().lower()
        if word not in (*_TRUE, *_FALSE):
            raise ValueError
        return word in _TRUE

    return _setting(default, Rule(doc, "true or false", parse, also_variable=also_variable))


def _number(
    default: int | float, doc: str, minimum: int, maximum: int, unit: type[int] | type[float] = int
) -> Any:
    def parse(given: _Given) -> int | float:
        try:
            number = unit(str(given.raw).strip())
        except ValueError:
            raise ValueError from None  # the original message is about Python literals
        # This form of the comparison also refuses "nan", for which every comparison is false.
        if not minimum <= number <= maximum:
            raise ValueError
        return number

    noun = "a whole number" if unit is int else "a number"
    return _setting(default, Rule(doc, f"{noun} from {minimum} to {maximum}", parse))


def _seconds(default: float, doc: str, minimum: int, maximum: int) -> Any:
    return _number(default, doc, minimum, maximum, float)


def _weight(default: float, doc: str) -> Any:
    return _number(default, doc, 0, 1000, float)


def _clean_text(given: _Given) -> str:
    if not isinstance(given.raw, str | Path):
        raise ValueError("it must be text, in quotes")
    text = str(given.raw).strip()
    if not text.isprintable():
        raise ValueError("it has a control character")
    return text


def _text(default: str, doc: str, *, blank: bool = False) -> Any:
    def parse(given: _Given) -> str:
        text = _clean_text(given)
        if not (text or blank):
            raise ValueError
        return text

    return _setting(default, Rule(doc, "text" if blank else "text that is not blank", parse))


def _secret(doc: str, also_variable: str) -> Any:
    def parse(given: _Given) -> str | None:
        return _clean_text(given) or None

    rule = Rule(doc, "text", parse, secret=True, also_variable=also_variable)
    return _setting(None, rule)


def _web_address(default: str, doc: str) -> Any:
    def parse(given: _Given) -> str:
        url = _clean_text(given).rstrip("/")
        if not re.fullmatch(r"https?://[^\s/]\S*", url):
            raise ValueError
        return url

    return _setting(default, Rule(doc, "an address that begins with http:// or https://", parse))


def _choice(default: str, doc: str, choices: tuple[str, ...]) -> Any:
    def parse(given: _Given) -> str:
        return _one_of(choices, given.raw)

    return _setting(default, Rule(doc, "one of " + ", ".join(choices), parse))


def _choices(default: tuple[str, ...], doc: str, choices: tuple[str, ...]) -> Any:
    def parse(given: _Given) -> tuple[str, ...]:
        words = given.raw.split(",") if isinstance(given.raw, str) else given.raw
        if not isinstance(words, list | tuple):
            raise ValueError
        chosen = tuple(_one_of(choices, word) for word in words if word != "")
        if len(set(chosen)) < len(chosen):
            raise ValueError("it names something twice")
        return chosen

    return _setting(default, Rule(doc, "a list of " + ", ".join(choices), parse))


def _names(doc: str, allowed: str, each: str, pattern: str, default: tuple[str, ...] = ()) -> Any:
    def parse(given: _Given) -> tuple[str, ...]:
        names = given.raw.split(",") if isinstance(given.raw, str) else given.raw
        if not isinstance(names, list | tuple):
            raise ValueError
        chosen = tuple(str(name).strip().rstrip("/").lower() for name in names if name != "")
        for name in chosen:
            if not re.fullmatch(pattern, name):
                raise ValueError(f"{name!r} is not {each}")
        return tuple(dict.fromkeys(chosen))

    return _setting(default, Rule(doc, allowed, parse))


def _one_of(choices: tuple[str, ...], raw: object) -> str:
    word = str(raw).strip().lower()
    if word not in choices:
        raise ValueError
    return word


def _path(default: Callable[[], Path] | None, doc: str, default_text: str = "") -> Any:
    def parse(given: _Given) -> Path | None:
        text = _clean_text(given)
        if not text and default:
            raise ValueError
        return _expand(text, given) if text else None

    rule = Rule(doc, "the path of a file or folder", parse, default_text, is_path=True)
    return _setting(default, rule)


def _paths(doc: str) -> Any:
    def parse(given: _Given) -> tuple[str, ...]:
        # Accept commas, as in other settings, or the separator of PATH. A path that contains one
        # must be written in a list.
        text = given.raw.replace(os.pathsep, ",") if isinstance(given.raw, str) else given.raw
        each = text.split(",") if isinstance(text, str) else text
        if not isinstance(each, list | tuple) or not all(isinstance(path, str) for path in each):
            raise ValueError
        chosen = [_clean_text(given._replace(raw=path)) for path in each]
        return tuple(dict.fromkeys(str(_expand(path, given)) for path in chosen if path))

    allowed = "a list of paths"
    return _setting((), Rule(doc, allowed, parse))


def _store_address(default: Callable[[], str], doc: str, default_text: str) -> Any:
    def parse(given: _Given) -> str:
        text = _clean_text(given)
        if not text:
            raise ValueError
        return text if _is_not_a_path(text) else str(_expand(text, given))

    rule = Rule(doc, "a path or a database URL", parse, default_text, is_path=True)
    return _setting(default, rule)


def _is_not_a_path(text: str) -> bool:
    return "://" in text or text == ":memory:"


def _expand(text: str, given: _Given) -> Path:
    """Make a path absolute: expand variables and `~`, and start from the folder of its source."""

    def value_of(match: re.Match[str]) -> str:
        name = next(filter(None, match.groups()))
        if name not in given.environ:
            raise ValueError(f"the variable {name} is not set")
        return given.environ[name]

    expanded = _VARIABLE.sub(value_of, text)
    try:
        return (given.folder / Path(expanded).expanduser()).absolute()
    except RuntimeError as error:  # "~name/…", where pathlib knows no user of that name
        raise ValueError("there is no such user's home folder") from error


def data_folder() -> Path:
    """Return Byheart's data folder on this platform."""
    return platformdirs.user_data_path("byheart", appauthor=False)


def _data_file() -> str:
    return str(data_folder() / "memory.db")


def _files_folder() -> Path:
    return data_folder() / "files"


def _cache_folder() -> Path:
    return platformdirs.user_cache_path("byheart", appauthor=False)


# --- The settings -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold every setting with its value."""

    enabled: bool = _flag(True, "Whether the memory is used at all.")
    db_path: str = _store_address(
        _data_file, "The store: a file, or the URL of a database.", "`<data folder>/memory.db`"
    )
    space: str = _text("default", "The space that is used when none is named.")
    embedding_provider: EmbeddingProvider = _choice(
        "auto", "Who turns text into vectors.", get_args(EmbeddingProvider)
    )
    embedding_model: str = _text(
        "", "The embedding model; empty means the provider's own default.", blank=True
    )
    workspaces: tuple[str, ...] = _paths("Folders that `serve` and `mcp` index when they start.")
    auto_reindex: bool = _flag(True, "Whether they then watch these folders.")
    model_path: Path | None = _path(None, "A folder with the model's files.")
    cache_dir: Path = _path(_cache_folder, "The folder for downloaded models.", "`<cache folder>`")
    model_sources: tuple[ModelSource, ...] = _choices(
        get_args(ModelSource),
        "The sources of the model's files if the cache has none, in order.",
        get_args(ModelSource),
    )
    offline: bool = _flag(False, "Whether downloads are forbidden.", "HF_HUB_OFFLINE")
    embedding_threads: int = _number(
        0, "The number of embedding threads; 0 means automatic.", 0, 256
    )
    ollama_url: str = _web_address("http://localhost:11434", "The address of Ollama.")
    openai_base_url: str = _web_address(
        "https://api.openai.com/v1", "The address of the OpenAI-compatible service."
    )
    openai_api_key: str | None = _secret("The API key of that service.", "OPENAI_API_KEY")
    embedding_timeout_seconds: float = _seconds(
        30.0, "The time limit of a remote embedding provider.", 1, 3600
    )
    chunk_tokens: int = _number(400, "The target size of a chunk, in tokens.", 32, 2000)
    overlap_tokens: int = _number(
        80, "Tokens before a chunk that its vector also covers; less than `chunk_tokens`.", 0, 400
    )
    snippet_chars: int = _number(500, "The length of a snippet, in characters.", 40, 5000)
    recall_relevance_weight: float = _weight(
        0.4, "The weight of relevance to the query in a recall."
    )
    recall_importance_weight: float = _weight(0.3, "The weight of importance in a recall.")
    recall_recency_weight: float = _weight(0.2, "The weight of recency in a recall.")
    recall_frequency_weight: float = _weight(0.1, "The weight of the frequency of use in a recall.")
    max_content_bytes: int = _number(
        10_000_000, "The largest text that can be saved, in bytes.", 1, 1_000_000_000
    )
    max_chunks: int = _number(20_000, "The largest number of chunks of one text.", 1, 1_000_000)
    busy_timeout_seconds: float = _seconds(
        30.0, "The time to wait for the write lock of another process.", 0, 3600
    )
    notice_similar: bool = _flag(
        True, "Whether a save reports stored memories that are almost the same."
    )
    similar_threshold: float = _number(
        0.9, "The least similarity of these; 1 is identical.", 0, 1, float
    )
    retention_policy: bool = _flag(False, "Whether memories expire by importance.")
    prune_after_days: float = _seconds(
        30.0,
        "Days after which an expired memory is erased; until then it is hidden.",
        0,
        365_000,
    )
    identity_files: tuple[str, ...] = _paths(
        "Files such as USER.md and IDENTITY.md that begin every context of this space."
    )
    notice_echoes: bool = _flag(
        True, "Whether logged replies that repeat the context are recognized as echoes."
    )
    min_turn_words: int = _number(
        3, "Logged turns with fewer words are kept, but not embedded.", 0, 100
    )
    summary_every_turns: int = _number(
        20,
        "The number of turns after which a session's summary is renewed; 0 means never.",
        0,
        10_000,
    )
    capture_tools: tuple[str, ...] = _names(
        "Agent tools whose outputs hooks and transcripts capture; `*` matches anything.",
        "a list of names such as bash or mcp__*",
        "the name of a tool",
        r"[\w*?.:-]+",
        (
            *("bash", "webfetch", "websearch", "task", "agent"),
            *("shell", "shell_command", "exec_command", "local_shell", "mcp__*"),
        ),
    )
    capture_chars: int = _number(
        8_000,
        "The kept length of such an output, in characters, half from its end; 0 means all.",
        0,
        10_000_000,
    )
    redact_secrets: RedactSecrets = _choice(
        "captured",
        "Where secrets are replaced: in texts of hooks and transcripts (hooks), also in indexed "
        "files (captured), also in saved texts (all), or nowhere (none).",
        get_args(RedactSecrets),
    )
    hook_timeout_seconds: float = _number(
        2.0, "The time that a hook may keep an agent waiting.", 0, 600, float
    )
    hook_capture_seconds: float = _number(
        10.0, "The time limit of a hook if the agent does not wait.", 0, 600, float
    )
    hook_max_tokens: int = _number(
        1_000, "The token budget of what a hook adds to a prompt; 0 means nothing.", 0, 100_000
    )
    hook_min_similarity: float = _number(
        0.3,
        "The least cosine between a prompt and a passage that a hook adds to it; a passage with "
        "half of the prompt's words is added too.",
        0,
        1,
        float,
    )
    collect_stats: bool = _flag(True, "Whether queries and saves are counted for the statistics.")
    slow_query_ms: float = _number(
        500.0, "The time above which a query counts as slow, in milliseconds.", 0, 3_600_000, float
    )
    mcp_max_tokens: int = _number(
        8_000, "The largest answer of an MCP tool, in tokens.", 1_000, 1_000_000
    )
    unload_after_seconds: float = _number(
        60.0, "The idle time after which a server unloads the model.", 1, 10**9, float
    )
    # Not `host` and `port`, because Kubernetes sets BYHEART_PORT for a service named byheart.
    serve_host: str = _text("127.0.0.1", "The address that the server listens on.")
    serve_port: int = _number(8765, "The port that it listens on; 0 means any free port.", 0, 65535)
    allowed_hosts: tuple[str, ...] = _names(
        "Host names that the server accepts, besides those of this machine; `*` means any.",
        "a list of host names",
        "a host name",
        r"\*|\[[0-9a-f:.]+\]|[^\s/:\[\]*]+",
    )
    allowed_origins: tuple[str, ...] = _names(
        "Origins of web pages that may call the server from a browser, besides its own.",
        "a list of origins such as https://example.com",
        "an origin such as https://example.com",
        r"https?://[^\s/*]+",
    )
    max_body_bytes: int = _number(
        20_000_000, "The largest request body, in bytes.", 1_000, 2_000_000_000
    )
    max_requests_per_minute: int = _number(
        6_000,
        "The number of requests per minute for each API key or address; 0 means no limit.",
        0,
        10**9,
    )
    max_concurrent_reads: int = _number(
        4, "The number of concurrent reads; higher if a remote service embeds.", 1, 1000
    )
    max_concurrent_writes: int = _number(4, "The number of concurrent writes.", 1, 1000)
    max_waiting_requests: int = _number(
        256, "The number of waiting requests of each kind; further ones are refused.", 0, 100_000
    )
    max_connections: int = _number(
        500,
        "The number of open connections, at most half of the system's limit. A further one closes "
        "the connection that is idle longest, or is refused.",
        1,
        1_000_000,
    )
    client_timeout_seconds: float = _number(
        20.0,
        "The time limit for the head of a request, and for pauses while a client sends a body or "
        "reads an answer.",
        1,
        86_400,
        float,
    )
    files_dir: Path = _path(
        _files_folder,
        "The only folder to which the server writes files for callers.",
        "`<data folder>/files`",
    )
    log_level: LogLevel = _choice(
        "warning", "The lowest level of events that are logged.", get_args(LogLevel)
    )
    log_file: Path | None = _path(None, "A file for the log; empty means stderr.")

    @property
    def recall_weights(self) -> tuple[float, float, float, float]:
        """Return the weights of relevance, importance, recency and frequency."""
        return (
            self.recall_relevance_weight,
            self.recall_importance_weight,
            self.recall_recency_weight,
            self.recall_frequency_weight,
        )


@dataclass(frozen=True, slots=True)
class SettingRow:
    """Describe one setting as `config list` shows it: paths as text, secrets hidden."""

    key: str
    value: object
    source: str
    default: object
    doc: str


_FIELDS: dict[str, Field[Any]] = {each.name: each for each in fields(Settings)}
_RULES: dict[str, Rule] = {key: each.metadata["rule"] for key, each in _FIELDS.items()}


def setting_keys() -> tuple[str, ...]:
    """Return the key of every setting, in the order of the reference."""
    return tuple(_RULES)


def variable_of(key: str) -> str:
    """Return the name of a setting's environment variable."""
    return PREFIX + key.upper()


def default_config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the config file, whether it exists or not."""
    named = (os.environ if environ is None else environ).get(CONFIG_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_config_path("byheart", appauthor=False) / "config.toml"


def load_settings(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config_path: Path | None = None,
) -> Settings:
    """Read the settings: `overrides` win over the environment, the file, and the defaults."""
    return _resolve(_gather(overrides, environ, config_path))


def describe_settings(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config_path: Path | None = None,
) -> tuple[SettingRow, ...]:
    """List every setting with its value, the value's source, its default and its meaning."""
    given = _gather(overrides, environ, config_path)
    settings, defaults = _resolve(given), Settings()
    return tuple(
        SettingRow(
            key,
            _showable(key, getattr(settings, key)),
            given[key].source if key in given else "default",
            _showable(key, getattr(defaults, key)),
            rule.doc,
        )
        for key, rule in _RULES.items()
    )


def overruled_settings(
    environ: Mapping[str, str] | None = None, config_path: Path | None = None
) -> dict[str, str]:
    """Find settings of the file that a variable overrides, each with the name of the variable."""
    variables = os.environ if environ is None else environ
    path = config_path or default_config_path(variables)
    in_file, around = _from_file(path, variables), _from_environment(variables)
    return {
        key: around[key].source.removeprefix("environment ")
        for key in in_file
        if key in around and _parse_value(key, in_file[key]) != _parse_value(key, around[key])
    }


def holds_secrets(path: Path) -> bool:
    """Return whether a config file sets a secret."""
    try:
        return any(_RULES[key].secret for key in _from_file(path, os.environ))
    except SettingsError:
        return False


def unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Find `BYHEART_*` variables that are no setting, each with the most similar one, or "".

    These variables are no error, because other programs may use the prefix too.
    """
    known = {CONFIG_VARIABLE, *map(variable_of, _RULES)}
    found = {}
    for name in sorted(os.environ if environ is None else environ):
        if name.startswith(PREFIX) and name not in known:
            # Compare without the prefix, which would make any two names similar.
            nearest = _nearest(name.removeprefix(PREFIX))
            found[name] = variable_of(nearest) if nearest else ""
    return found


def render_reference() -> str:
    """Write the table of docs/settings.md."""
    rows = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for key, rule in _RULES.items():
        default = rule.default_text or _default_text(_FIELDS[key].default)
        rows.append(f"| `{key}` | {default} | {rule.allowed} | {rule.doc} |")
    return "\n".join(rows) + "\n"


def _default_text(value: object) -> str:
    if value in (None, "", ()):
        return "none" if value is None else "empty"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _showable(key: str, value: object) -> object:
    if _RULES[key].secret and value is not None:
        return HIDDEN
    if isinstance(value, str | Path):
        return _PASSWORD_IN_URL.sub(r"\1***@", str(value))
    return value


# --- Layers: defaults, file, environment, overrides -------------------------------------------


def _gather(
    overrides: Mapping[str, object] | None,
    environ: Mapping[str, str] | None,
    config_path: Path | None,
) -> dict[str, _Given]:
    """Collect the given value of each setting from the strongest layer that has one."""
    variables = os.environ if environ is None else environ
    path = config_path or default_config_path(variables)
    return {
        **_from_file(path, variables),
        **_from_environment(variables),
        **_from_overrides(overrides or {}, variables),
    }


def _from_file(path: Path, environ: Mapping[str, str]) -> dict[str, _Given]:
    return _from_text(_read_text(path), path, environ)


def _from_text(text: str, path: Path, environ: Mapping[str, str]) -> dict[str, _Given]:
    """Collect the settings in the text of a config file."""
    document = _parse_toml(text, path)
    table = document.pop(FILE_TABLE, {})
    source = f"file {path}"
    if not isinstance(table, dict):
        raise SettingsError(
            f"{FILE_TABLE} in {path} is not a table", f"write [{FILE_TABLE}] on a line of its own"
        )
    for key, value in (*document.items(), *table.items()):
        if key not in _RULES:
            raise SettingsError(f"there is no setting {key!r} ({source})", _how_to_drop(key, value))
    for key in document.keys() & table.keys():
        raise SettingsError(
            f"{key} is set twice in {path}: above all tables and in [{FILE_TABLE}]",
            "remove one of the two",
        )
    folder = path.absolute().parent
    return {key: _Given(raw, source, folder, environ) for key, raw in (document | table).items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    given = {}
    for key, rule in _RULES.items():
        for name in (variable_of(key), rule.also_variable):
            # An empty variable counts as unset, as in `NAME=${OTHER:-}` in a compose file.
            if environ.get(name):
                given[key] = _Given(environ[name], f"environment {name}", Path(), environ)
                break
    return given


def _from_overrides(
    overrides: Mapping[str, object], environ: Mapping[str, str]
) -> dict[str, _Given]:
    given = {}
    for key, raw in overrides.items():
        require_known(key, "flag")
        if raw is not None:
            given[key] = _Given(raw, "flag", Path(), environ)
    return given


def _resolve(given: Mapping[str, _Given]) -> Settings:
    values: dict[str, Any] = {key: _parse_value(key, each) for key, each in given.items()}
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


def _parse_value(key: str, given: _Given) -> object:
    rule = _RULES[key]
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
    if key in _RULES:
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
    close = difflib.get_close_matches(key.lower().replace("-", "_"), _RULES, n=1)
    return close[0] if close else ""


# --- The file ---------------------------------------------------------------------------------


def set_setting(key: str, value: object, config_path: Path | None = None) -> Path:
    """Write one setting into the config file, and leave all other lines unchanged."""
    from byheart.system import toml_editing  # importing tomlkit takes longer than most commands

    path = config_path or default_config_path()
    require_known(key, "config set")
    parsed = _parse_value(key, _Given(value, "config set", Path(), os.environ))
    written = _written_form(key, value, parsed)
    text = _read_text(path)
    table = () if key in _parse_toml(text, path) else (FILE_TABLE,)
    try:
        edited = toml_editing.put_values(text, table, {key: written})
    except toml_editing.Uneditable:
        edited = text
    if _lookup(edited, key) != written:
        raise SettingsError(
            f"{path} is written in a way that cannot be edited safely",
            f"write {key} = {toml_editing.literal(written)} into it yourself",
        )
    _require_sound(edited, path)
    _write_atomically(path, edited, private=_RULES[key].secret)
    return path


def unset_setting(key: str, config_path: Path | None = None) -> bool:
    """Remove one setting from the config file, and return whether the file had it.

    A key that is no setting can be removed too, for example a misspelt one.
    """
    from byheart.system import toml_editing  # importing tomlkit takes longer than most commands

    path = config_path or default_config_path()
    text = _read_text(path)
    _parse_toml(text, path)
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
    _write_atomically(path, edited)
    return True


def _require_sound(text: str, path: Path) -> None:
    """Refuse a file text that would stop every command, in this or in another environment."""
    try:
        in_file = _from_text(text, path, os.environ)
        _resolve(in_file)
        _resolve({**in_file, **_from_environment(os.environ)})
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
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    table = document.get(FILE_TABLE, {})
    value = document.get(key, table.get(key) if isinstance(table, dict) else None)
    return None if isinstance(value, dict) else value


def _written_form(key: str, raw: object, parsed: object) -> object:
    """Choose the text for the file: the typed text, if it has the same meaning there."""
    if not _RULES[key].is_path:
        return "" if parsed is None else list(parsed) if isinstance(parsed, tuple) else parsed
    text = str(raw).strip()
    stays = not text or text[0] in "~$%" or _is_not_a_path(text) or Path(text).is_absolute()
    # In the file, a relative path starts from the file's folder, not from the working folder.
    return text if stays else str(Path(text).absolute())


def _read_text(path: Path) -> str:
    """Read the config file; a missing file counts as empty."""
    try:
        # utf-8-sig, because Windows editors often begin a file with a byte order mark.
        return read_to_end(path).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text (byte {error.start})", "save the file as UTF-8"
        ) from error
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}",
            f"correct the file, or name another in {CONFIG_VARIABLE}",
        ) from error


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", "correct that line") from error


def _write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Replace the file in one step, so that no reader ever sees an incomplete file."""
    target = path.resolve()  # the config file is often a link to a folder of dotfiles
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        make_private_folder(target.parent)
        # The file may contain an API key, so only its owner may read it, unless an existing file
        # is already readable by others.
        mode = target.stat().st_mode & 0o777 if target.exists() else FILE_MODE
        if private:
            mode &= FILE_MODE
        temporary.touch(mode=FILE_MODE)
        temporary.chmod(mode)
        with temporary.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SettingsError(
            f"{path} cannot be written: {error.strerror}", "check the folder's permissions"
        ) from error
