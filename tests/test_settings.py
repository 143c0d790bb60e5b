import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byheart.settings as settings_module
from byheart.errors import SettingsError
from byheart.settings import (
    SettingRow,
    Settings,
    default_config_path,
    describe_settings,
    holds_secrets,
    load_settings,
    render_reference,
    set_setting,
    setting_keys,
    unknown_variables,
    unset_setting,
    variable_of,
)

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


@pytest.fixture
def write(config: Path) -> Callable[[str], Path]:
    def write_config(text: str) -> Path:
        config.parent.mkdir(exist_ok=True)
        config.write_bytes(text.encode())
        return config

    return write_config


def row_of(key: str, **sources: Any) -> SettingRow:
    return next(row for row in describe_settings(**sources) if row.key == key)


# --- Layers -----------------------------------------------------------------------------------

# Per type: in the file, in the environment, as a flag, and what each is read as.
LAYERS: dict[str, tuple[tuple[str, str, object], tuple[object, object, object]]] = {
    "auto_reindex": (("false", "yes", False), (False, True, False)),
    "snippet_chars": (("100", "200", 300), (100, 200, 300)),
    "busy_timeout_seconds": (("1", "2.5", 3), (1.0, 2.5, 3.0)),
    "space": (('"file"', "env", "flag"), ("file", "env", "flag")),
    "embedding_provider": (('"hash"', "OpenAI", "none"), ("hash", "openai", "none")),
    "model_sources": (
        ('["hub"]', "wheel, hub", ["wheel"]),
        (("hub",), ("wheel", "hub"), ("wheel",)),
    ),
    "ollama_url": (('"http://a/"', "http://b", "https://c"), ("http://a", "http://b", "https://c")),
    "allowed_hosts": (
        ('["a.example"]', "B.example, [::1]", ["*"]),
        (("a.example",), ("b.example", "[::1]"), ("*",)),
    ),
    "allowed_origins": (
        ('["https://a.example/"]', "http://b:3000", []),
        (("https://a.example",), ("http://b:3000",), ()),
    ),
    "workspaces": (
        ('["/a,b", "/c"]', f"/d,/e{os.pathsep}/f", ["/g", "/g"]),
        (("/a,b", "/c"), ("/d", "/e", "/f"), ("/g",)),
    ),
    "log_file": (('"/a"', "/b", Path("/c")), (Path("/a"), Path("/b"), Path("/c"))),
    "db_path": (('"/a"', "postgresql://h/b", "/c"), ("/a", "postgresql://h/b", "/c")),
    "openai_api_key": (('"a"', "b", "c"), ("a", "b", "c")),
    "voyage_api_key": (('"a"', "b", "c"), ("a", "b", "c")),
    "recall_max_tokens": (("2", "3", "5"), (2, 3, 5)),
    "context_max_tokens": (("2", "3", "5"), (2, 3, 5)),
    "context_recent": (("2", "3", "5"), (2, 3, 5)),
    "context_top_k": (("2", "3", "5"), (2, 3, 5)),
    "embedding_requests": (("2", "3", "5"), (2, 3, 5)),
    "helper_processes": (("0", "1", "2"), (0, 1, 2)),
}


@pytest.mark.parametrize("key", LAYERS)
def test_each_layer_is_stronger_than_the_one_before(
    key: str, write: Callable[[str], Path], config: Path
) -> None:
    (in_file, in_environment, as_flag), expected = LAYERS[key]
    environ, name = {variable_of(key): in_environment}, variable_of(key)

    def value_and_source(**sources: Any) -> tuple[object, str]:
        value = getattr(load_settings(config_path=config, **sources), key)
        return value, row_of(key, config_path=config, **sources).source

    assert value_and_source(environ={}) == (getattr(Settings(), key), "default")
    write(f"[memory]\n{key} = {in_file}\n")
    assert value_and_source(environ={}) == (expected[0], f"file {config}")
    assert value_and_source(environ=environ) == (expected[1], f"environment {name}")
    assert value_and_source(environ=environ, overrides={key: as_flag}) == (expected[2], "flag")


def test_without_any_source_every_setting_has_its_default(config: Path) -> None:
    assert load_settings(environ={}, config_path=config) == Settings()


def test_a_flag_that_was_not_given_changes_nothing(config: Path) -> None:
    settings = load_settings({"space": None}, {"BYHEART_SPACE": "env"}, config)
    assert settings.space == "env"


def test_an_empty_variable_counts_as_unset(config: Path) -> None:
    assert load_settings(environ={"BYHEART_SPACE": ""}, config_path=config).space == "default"


def test_keys_may_stand_above_all_tables(write: Callable[[str], Path]) -> None:
    path = write('space = "top"\n[memory]\nenabled = false\n')
    settings = load_settings(environ={}, config_path=path)
    assert (settings.space, settings.enabled) == ("top", False)


def test_the_seeds_config_file_is_read(write: Callable[[str], Path]) -> None:
    path = write(
        '[memory]\nenabled = false\ndb_path = "~/.silentclaw/memory.db"\n'
        'embedding_provider = "openai"\nembedding_model = "text-embedding-3-small"\n'
        "auto_reindex = true\n"
    )
    settings = load_settings(environ={}, config_path=path)
    assert settings.db_path == str(Path.home() / ".silentclaw" / "memory.db")
    assert settings.embedding_model == "text-embedding-3-small"


def test_openai_api_key_is_read_and_the_own_variable_wins(config: Path) -> None:
    both = {"OPENAI_API_KEY": "general", "BYHEART_OPENAI_API_KEY": "own"}
    assert load_settings(environ=both, config_path=config).openai_api_key == "own"
    del both["BYHEART_OPENAI_API_KEY"]
    assert load_settings(environ=both, config_path=config).openai_api_key == "general"
    row = row_of("openai_api_key", environ=both, config_path=config)
    assert row.source == "environment OPENAI_API_KEY"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().space = "other"  # type: ignore[misc]


# --- Paths ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="XDG folders are Linux's")
def test_xdg_folders_are_honoured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    assert default_config_path({}) == tmp_path / "config" / "byheart" / "config.toml"
    assert Settings().db_path == str(tmp_path / "data" / "byheart" / "memory.db")
    assert Settings().cache_dir == tmp_path / "cache" / "byheart"


def test_byheart_config_names_another_file(write: Callable[[str], Path]) -> None:
    path = write('space = "there"\n')
    assert load_settings(environ={"BYHEART_CONFIG": str(path)}).space == "there"


def test_home_and_variables_are_expanded_in_paths(config: Path) -> None:
    environ = {"BYHEART_DB_PATH": "$ROOT/${NAME}.db", "ROOT": "/data", "NAME": "mine"}
    environ["BYHEART_LOG_FILE"] = "~/byheart.log"
    settings = load_settings(environ=environ, config_path=config)
    assert settings.db_path == str(Path("/data/mine.db"))
    assert settings.log_file == Path.home() / "byheart.log"


def test_a_relative_path_in_the_file_starts_from_the_files_folder(
    write: Callable[[str], Path],
) -> None:
    path = write('db_path = "mine.db"\n')
    settings = load_settings(environ={}, config_path=path)
    assert settings.db_path == str(path.parent / "mine.db")


def test_a_relative_path_elsewhere_starts_from_the_working_folder(config: Path) -> None:
    settings = load_settings({"db_path": "mine.db"}, {}, config)
    assert settings.db_path == str(Path.cwd() / "mine.db")


@pytest.mark.parametrize("address", [":memory:", "postgresql://u:p$w@host/db"])
def test_what_is_no_path_is_left_as_it_is(address: str, config: Path) -> None:
    assert load_settings({"db_path": address}, {}, config).db_path == address


# --- Refusals ---------------------------------------------------------------------------------

REFUSED = {
    "enabled": ("maybe", 2),
    "snippet_chars": ("many", "39", "5001", "100.5", True),
    "embedding_timeout_seconds": ("0", "nan", "inf", "soon"),
    "space": ("  ", 7, "a\x00b", "a\nb"),
    "embedding_provider": ("onyx", ""),
    "model_sources": ("cache,shop", "hub,hub", 3),
    "ollama_url": ("localhost:11434", "ftp://x", "http://"),
    "db_path": (" ", "$NOWHERE/x.db", 5),
    "cache_dir": ("",),
    "allowed_hosts": ("http://a.example", "a.example/x", "a b", "*.example", "a:80", 7),
    "allowed_origins": ("a.example", "*", "null", "https://a.example/page", 7),
    "serve_port": ("65536", "-1", "http"),
    "log_level": ("loud",),
}


@pytest.mark.parametrize(("key", "value"), [(k, v) for k, vs in REFUSED.items() for v in vs])
def test_a_bad_value_is_refused_with_its_name_its_place_and_what_is_allowed(
    key: str, value: object, config: Path
) -> None:
    with pytest.raises(SettingsError) as refusal:
        load_settings({key: value}, {}, config)
    assert refusal.value.message.startswith(f"{key} = ")
    assert "(flag)" in refusal.value.message
    assert refusal.value.hint.startswith(f"{key} is ")


def test_a_bad_value_names_the_variable_it_came_from(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"environment BYHEART_ENABLED"):
        load_settings(environ={"BYHEART_ENABLED": "perhaps"}, config_path=config)


def test_a_bad_value_names_the_file_it_came_from(write: Callable[[str], Path]) -> None:
    path = write("chunk_tokens = 5\n")
    with pytest.raises(SettingsError, match="from 32 to 2000") as refusal:
        load_settings(environ={}, config_path=path)
    assert str(path) in refusal.value.message


@pytest.mark.parametrize("text", ["chunk_token = 5\n", "[memory]\nchunk-tokens = 5\n"])
def test_an_unknown_key_in_the_file_is_refused_with_the_nearest_one(
    text: str, write: Callable[[str], Path]
) -> None:
    with pytest.raises(SettingsError, match="did you mean chunk_tokens"):
        load_settings(environ={}, config_path=write(text))


def test_an_unknown_table_and_an_unknown_flag_are_refused(
    write: Callable[[str], Path], config: Path
) -> None:
    with pytest.raises(SettingsError, match="no setting 'zzz'"):
        load_settings({"zzz": 1}, {}, config)
    with pytest.raises(SettingsError, match="no setting 'server'"):
        load_settings(environ={}, config_path=write("[server]\nport = 1\n"))


def test_a_key_that_is_set_twice_is_refused(write: Callable[[str], Path]) -> None:
    path = write('space = "a"\n[memory]\nspace = "b"\n')
    with pytest.raises(SettingsError, match="set twice"):
        load_settings(environ={}, config_path=path)


def test_a_memory_that_is_no_table_is_refused(write: Callable[[str], Path]) -> None:
    with pytest.raises(SettingsError, match="not a table"):
        load_settings(environ={}, config_path=write("memory = 3\n"))


def test_malformed_toml_is_refused_with_its_line(write: Callable[[str], Path]) -> None:
    with pytest.raises(SettingsError, match=r"not valid TOML: .*line 2"):
        load_settings(environ={}, config_path=write('space = "a"\nenabled = \n'))


def test_a_file_that_is_not_utf8_is_refused(config: Path) -> None:
    config.parent.mkdir()
    config.write_bytes(b'space = "caf\xe9"\n')
    with pytest.raises(SettingsError, match=r"not UTF-8 text \(byte 12\)"):
        load_settings(environ={}, config_path=config)


def test_a_byte_order_mark_is_read_over(config: Path) -> None:
    config.parent.mkdir()
    config.write_bytes(b'\xef\xbb\xbfspace = "a"\r\n')
    assert load_settings(environ={}, config_path=config).space == "a"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load_settings(environ={}, config_path=tmp_path)


def test_an_overlap_must_be_less_than_the_chunk(config: Path) -> None:
    with pytest.raises(SettingsError, match="set overlap_tokens to about 12"):
        load_settings({"chunk_tokens": 64, "overlap_tokens": 64}, {}, config)


def test_an_overlap_nobody_set_keeps_its_share_of_a_smaller_chunk(config: Path) -> None:
    assert load_settings({"chunk_tokens": 100}, {}, config).overlap_tokens == 20
    assert load_settings({"chunk_tokens": 2000}, {}, config).overlap_tokens == 80


# --- Listing ----------------------------------------------------------------------------------


def test_the_listing_has_every_setting_with_its_meaning(config: Path) -> None:
    rows = describe_settings(environ={}, config_path=config)
    assert tuple(row.key for row in rows) == setting_keys()
    assert all(row.doc.endswith(".") and row.value == row.default for row in rows)


def test_secrets_are_never_shown(config: Path) -> None:
    flags = {"openai_api_key": "sk-secret", "db_path": "postgresql://me:sec/r@t@host/db"}
    rows = {row.key: row.value for row in describe_settings(flags, {}, config)}
    assert rows["openai_api_key"] == "set (hidden)"
    assert rows["db_path"] == "postgresql://***"
    assert "sk-secret" not in repr(load_settings(flags, {}, config))
    assert "sec/r" not in repr(load_settings(flags, {}, config))


@pytest.mark.parametrize("secret", ["//me:s3cret@host/db", "///db?password=s3cret"])
def test_a_config_file_with_a_password_belongs_to_its_owner_alone(
    config: Path, secret: str
) -> None:
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("")
    config.chmod(0o644)
    set_setting("db_path", "postgresql://me@host/db", config)
    assert config.stat().st_mode & 0o777 == 0o644
    assert not holds_secrets(config)
    set_setting("db_path", f"postgresql:{secret}", config)
    assert config.stat().st_mode & 0o777 == 0o600
    assert holds_secrets(config)
    rows = {row.key: row.value for row in describe_settings({}, {}, config)}
    assert "s3cret" not in str(rows["db_path"])


def test_a_secret_that_is_refused_is_not_shown_either(config: Path) -> None:
    with pytest.raises(SettingsError) as refusal:
        load_settings({"openai_api_key": "sk-\x00secret"}, {}, config)
    assert "secret" not in str(refusal.value).replace("openai_api_key", "")


def test_unknown_variables_are_named_with_the_nearest_known_one_and_not_refused(
    config: Path,
) -> None:
    environ = {"BYHEART_CHUNK_TOKEN": "9", "BYHEART_DATA": "1", "BYHEART_CONFIG": "", "HOME": "/"}
    assert unknown_variables(environ) == {
        "BYHEART_CHUNK_TOKEN": "BYHEART_CHUNK_TOKENS",
        "BYHEART_DATA": "",
    }
    assert load_settings(environ=environ, config_path=config) == Settings()


def test_the_reference_lists_exactly_the_settings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render_reference() in page, (
        "put this table into docs/settings.md:\n" + render_reference()
    )
    assert page.count("\n| `") == len(setting_keys())


def test_importing_the_settings_loads_nothing_heavy() -> None:
    # An empty package stands in for byheart, whose front door may load more than the settings do.
    script = f"""
import sys, types
sys.modules["byheart"] = package = types.ModuleType("byheart")
package.__path__ = [{str(Path(settings_module.__file__).parents[1])!r}]
import byheart.settings
print(*sys.modules)
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert not {b"numpy", b"apsw", b"onnxruntime", b"click", b"rich"} & set(loaded.stdout.split())


# --- Editing the file -------------------------------------------------------------------------

COMMENTED = """\
# my settings

[memory]   # all of them
space   = "old"     # not "new" yet
model_sources = [
    "hub",   # first
    "wheel",
]
# the end
"""


def test_setting_a_value_keeps_every_other_line_and_comment(write: Callable[[str], Path]) -> None:
    path = write(COMMENTED)
    set_setting("space", "new", path)
    assert path.read_text() == COMMENTED.replace('"old"', '"new"')


def test_a_value_over_several_lines_is_replaced_whole(write: Callable[[str], Path]) -> None:
    path = write(COMMENTED)
    set_setting("model_sources", "wheel,hub", path)
    assert path.read_text().splitlines()[3:] == [
        'space   = "old"     # not "new" yet',
        'model_sources = ["wheel", "hub"]',
        "# the end",
    ]


def test_a_new_key_joins_the_memory_table(write: Callable[[str], Path]) -> None:
    path = write('[memory]\nspace = "a"\n')
    set_setting("chunk_tokens", "200", path)
    assert path.read_text() == '[memory]\nspace = "a"\nchunk_tokens = 200\n'


def test_a_key_above_all_tables_is_changed_where_it_stands(write: Callable[[str], Path]) -> None:
    path = write('space = "a"\r\n')
    set_setting("space", "b", path)
    assert path.read_bytes() == b'space = "b"\r\n'


def test_a_dotted_key_is_changed_where_it_stands(write: Callable[[str], Path]) -> None:
    path = write('memory.space = "a"\n')
    set_setting("space", "b", path)
    assert path.read_text() == 'memory.space = "b"\n'


def test_text_that_only_looks_like_a_setting_is_not_touched(write: Callable[[str], Path]) -> None:
    text = 'embedding_model = """\nspace = "x"\n"""\n'
    path = write(text)
    set_setting("space", "a", path)
    assert path.read_text() == text + '\n[memory]\nspace = "a"\n'


def test_an_inline_table_is_edited_inline(write: Callable[[str], Path]) -> None:
    path = write('memory = { space = "a" } # mine\n')
    set_setting("space", "b", path)
    assert path.read_text() == 'memory = { space = "b" } # mine\n'
    set_setting("chunk_tokens", 200, path)
    assert tomllib.loads(path.read_text()) == {"memory": {"space": "b", "chunk_tokens": 200}}
    assert unset_setting("chunk_tokens", path)
    assert path.read_text() == 'memory = { space = "b" } # mine\n'


def test_no_table_is_removed_as_if_it_were_a_setting(write: Callable[[str], Path]) -> None:
    path = write('[memory]\nspace = "a"\n')
    with pytest.raises(SettingsError, match="there is no setting 'memory'"):
        unset_setting("memory", path)
    assert path.read_text() == '[memory]\nspace = "a"\n'


def test_the_folder_and_the_file_are_made_readable_by_their_owner_only(config: Path) -> None:
    set_setting("openai_api_key", "sk-x", config)
    assert load_settings(environ={}, config_path=config).openai_api_key == "sk-x"
    assert [each.name for each in config.parent.iterdir()] == ["config.toml"]
    if os.name == "posix":
        assert config.stat().st_mode & 0o777 == 0o600


def test_a_linked_file_stays_a_link_and_keeps_its_mode(
    write: Callable[[str], Path], tmp_path: Path
) -> None:
    path, link = write('space = "a"\n'), tmp_path / "link.toml"
    path.chmod(0o644)
    link.symlink_to(path)
    set_setting("space", "b", link)
    assert link.is_symlink()
    assert path.read_text() == 'space = "b"\n'
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_relative_path_is_written_as_what_it_meant_when_it_was_set(config: Path) -> None:
    set_setting("db_path", "mine.db", config)
    set_setting("log_file", "~/byheart.log", config)
    written = tomllib.loads(config.read_text())["memory"]
    assert written == {"db_path": str(Path.cwd() / "mine.db"), "log_file": "~/byheart.log"}


def test_bad_and_unknown_settings_are_not_written(config: Path) -> None:
    with pytest.raises(SettingsError, match="from 32 to 2000"):
        set_setting("chunk_tokens", "9", config)
    with pytest.raises(SettingsError, match="did you mean space"):
        set_setting("spaces", "9", config)
    assert not config.exists()


def test_a_malformed_file_is_not_edited(write: Callable[[str], Path]) -> None:
    path = write("space = \n")
    with pytest.raises(SettingsError, match="not valid TOML"):
        set_setting("space", "b", path)
    assert path.read_text() == "space = \n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder where root cannot write either")
def test_a_file_that_cannot_be_written_is_reported() -> None:
    with pytest.raises(SettingsError, match="cannot be written"):
        set_setting("space", "b", Path("/proc/byheart/config.toml"))


def test_unsetting_removes_the_lines_of_that_key_only(write: Callable[[str], Path]) -> None:
    path = write(COMMENTED)
    assert unset_setting("model_sources", path)
    assert not unset_setting("model_sources", path)
    assert path.read_text() == COMMENTED.replace(COMMENTED[COMMENTED.index("model_") : -10], "")


def test_a_misspelt_key_can_be_unset_but_an_absent_one_is_unknown(
    write: Callable[[str], Path],
) -> None:
    path = write("spaec = 1\n")
    assert unset_setting("spaec", path)
    with pytest.raises(SettingsError, match="did you mean space"):
        unset_setting("spaec", path)


@given(value=st.text(min_size=1, max_size=40).filter(lambda text: text.strip().isprintable()))
def test_any_text_that_is_set_is_read_back_the_same(
    value: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    set_setting("embedding_model", value, path)
    set_setting("embedding_model", value, path)
    assert load_settings(environ={}, config_path=path).embedding_model == value.strip()
    assert unset_setting("embedding_model", path)
    assert path.read_text() == "[memory]\n"
