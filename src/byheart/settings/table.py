"""Declare each setting once, as a field of `Settings`.

Its parsing, its variable `BYHEART_<KEY>`, its validation and its line in docs/settings.md all
derive from this field.
"""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import platformdirs

from byheart.model.api_keys import VOICES, Voice
from byheart.model.memories import ORIGINS, Origin
from byheart.settings.setting_types import (
    Rule,
    choice,
    choices,
    flag,
    names,
    number,
    path,
    paths,
    seconds,
    secret,
    store_address,
    text,
    web_address,
    weight,
)
from byheart.startup.dataclass_types import dataclass

EmbeddingProvider = Literal["auto", "onnx", "ollama", "openai", "voyage", "hash", "none"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
ModelSource = Literal["hub", "wheel"]
RedactSecrets = Literal["none", "hooks", "captured", "all"]

PREFIX = "BYHEART_"


def data_folder() -> Path:
    """Return Byheart's data folder on this platform."""
    return platformdirs.user_data_path("byheart", appauthor=False)


def _data_file() -> str:
    return str(data_folder() / "memory.db")


def _files_folder() -> Path:
    return data_folder() / "files"


def _cache_folder() -> Path:
    return platformdirs.user_cache_path("byheart", appauthor=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold every setting with its value."""

    enabled: bool = flag(True, "Whether the memory is used at all.")
    db_path: str = store_address(
        _data_file, "The store: a file, or the URL of a database.", "`<data folder>/memory.db`"
    )
    space: str = text("default", "The space that is used when none is named.")
    embedding_provider: EmbeddingProvider = choice(
        "auto", "Who turns text into vectors.", get_args(EmbeddingProvider)
    )
    embedding_model: str = text(
        "", "The embedding model; empty means the provider's own default.", blank=True
    )
    reranker_model: str = text(
        "",
        "A cross-encoder that reads the first hits of a search again; empty means none.",
        blank=True,
    )
    rerank_passages: int = number(20, "The number of passages that it reads.", 1, 200)
    embed_on_save: bool = flag(
        True, "Whether a save makes the vectors of its text; otherwise a worker does."
    )
    workspaces: tuple[str, ...] = paths("Folders that `serve` and `mcp` index when they start.")
    auto_reindex: bool = flag(True, "Whether they then watch these folders.")
    model_path: Path | None = path(None, "A folder with the model's files.")
    cache_dir: Path = path(_cache_folder, "The folder for downloaded models.", "`<cache folder>`")
    model_sources: tuple[ModelSource, ...] = choices(
        get_args(ModelSource),
        "The sources of the model's files if the cache has none, in order.",
        get_args(ModelSource),
    )
    offline: bool = flag(False, "Whether downloads are forbidden.", "HF_HUB_OFFLINE")
    embedding_threads: int = number(
        0, "The number of embedding threads; 0 means automatic.", 0, 256
    )
    ollama_url: str = web_address("http://localhost:11434", "The address of Ollama.")
    openai_base_url: str = web_address(
        "https://api.openai.com/v1", "The address of the OpenAI-compatible service."
    )
    openai_api_key: str | None = secret("The API key of that service.", "OPENAI_API_KEY")
    voyage_api_key: str | None = secret("The API key of Voyage AI.", "VOYAGE_API_KEY")
    embedding_timeout_seconds: float = seconds(
        30.0, "The time limit of a remote embedding provider.", 1, 3600
    )
    embedding_requests: int = number(
        4, "The number of concurrent requests to a remote embedding provider.", 1, 64
    )
    helper_processes: int = number(
        3,
        "The most processes that help with a long import or index run, on as many free cores; "
        "0 means none.",
        0,
        64,
    )
    chunk_tokens: int = number(400, "The target size of a chunk, in tokens.", 32, 2000)
    overlap_tokens: int = number(
        80, "Tokens before a chunk that its vector also covers; less than `chunk_tokens`.", 0, 400
    )
    snippet_chars: int = number(500, "The length of a snippet, in characters.", 40, 5000)
    recall_relevance_weight: float = weight(
        0.4, "The weight of relevance to the query in a recall."
    )
    recall_importance_weight: float = weight(0.3, "The weight of importance in a recall.")
    recall_recency_weight: float = weight(0.2, "The weight of recency in a recall.")
    recall_frequency_weight: float = weight(0.1, "The weight of the frequency of use in a recall.")
    recall_max_tokens: int = number(
        1000, "The token budget of a recall that names none.", 1, 1_000_000
    )
    context_max_tokens: int = number(
        2000, "The token budget of a context that names none.", 1, 1_000_000
    )
    context_recent: int = number(
        10, "The number of recent turns in a context that names none.", 0, 1000
    )
    context_top_k: int = number(
        8, "The number of passages retrieved for a context that names none.", 0, 100
    )
    time_weight: float = seconds(
        1.0,
        "How much more memories of a time count that the question names: 1 means up to twice as "
        "much; 0 means that the time does not count.",
        0,
        10,
    )
    feedback_half_life_days: float = seconds(
        90.0,
        "Days after which feedback on a memory counts half; 0 means that it does not count.",
        0,
        365_000,
    )
    max_content_bytes: int = number(
        10_000_000, "The largest text that can be saved, in bytes.", 1, 1_000_000_000
    )
    max_chunks: int = number(20_000, "The largest number of chunks of one text.", 1, 1_000_000)
    busy_timeout_seconds: float = seconds(
        30.0, "The time to wait for the write lock of another process.", 0, 3600
    )
    index_memory_mb: int = number(
        1024,
        "The memory for the search indexes of all spaces in megabytes, on PostgreSQL; the least "
        "recently used indexes are released.",
        1,
        1_000_000,
    )
    postgres_local_chunks: int = number(
        1_000_000,
        "The most chunks of a space whose postings and vectors each server keeps, on PostgreSQL; "
        "those of a larger space stay in the database.",
        0,
        1_000_000_000,
    )
    notice_similar: bool = flag(
        True, "Whether a save reports stored memories that are almost the same."
    )
    similar_threshold: float = number(
        0.9, "The least similarity of these; 1 is identical.", 0, 1, float
    )
    retention_policy: bool = flag(False, "Whether memories expire by importance.")
    prune_after_days: float = seconds(
        30.0,
        "Days after which an expired memory is erased; until then it is hidden.",
        0,
        365_000,
    )
    identity_files: tuple[str, ...] = paths(
        "Files such as USER.md and IDENTITY.md that begin every context of this space."
    )
    context_min_confidence: float = number(
        0.05,
        "The least probability that a passage has to do with the question, for a context to "
        "include it; 0 includes every passage that was found.",
        0,
        1,
        float,
    )
    notice_echoes: bool = flag(
        True, "Whether logged replies that repeat the context are recognized as echoes."
    )
    min_turn_words: int = number(
        3, "Logged turns with fewer words are kept, but not embedded.", 0, 100
    )
    summary_every_turns: int = number(
        20,
        "The number of turns after which a session's summary is renewed; 0 means never.",
        0,
        10_000,
    )
    capture_tools: tuple[str, ...] = names(
        "Agent tools whose outputs hooks and transcripts capture; `*` matches anything.",
        "a list of names such as bash or mcp__*",
        "the name of a tool",
        r"[\w*?.:-]+",
        (
            *("bash", "webfetch", "websearch", "task", "agent"),
            *("shell", "shell_command", "exec_command", "local_shell", "mcp__*"),
        ),
    )
    capture_chars: int = number(
        8_000,
        "The kept length of such an output, in characters, half from its end; 0 means all.",
        0,
        10_000_000,
    )
    untrusted_tools: tuple[str, ...] = names(
        "Agent tools whose captured outputs wait for review, because strangers write them; `*` "
        "matches anything.",
        "a list of names such as webfetch or mcp__*",
        "the name of a tool",
        r"[\w*?.:-]+",
        ("webfetch", "websearch", "mcp__*"),
    )
    untrusted_origins: tuple[Origin, ...] = choices(
        (),
        "Origins whose new memories wait for review, and enter no prompt unasked.",
        ORIGINS,
    )
    redact_secrets: RedactSecrets = choice(
        "captured",
        "Where secrets are replaced: in texts of hooks and transcripts (hooks), also in indexed "
        "files (captured), also in saved texts (all), or nowhere (none).",
        get_args(RedactSecrets),
    )
    hook_timeout_seconds: float = number(
        2.0, "The time that a hook may keep an agent waiting.", 0, 600, float
    )
    hook_capture_seconds: float = number(
        10.0, "The time limit of a hook if the agent does not wait.", 0, 600, float
    )
    hook_max_tokens: int = number(
        1_000, "The token budget of what a hook adds to a prompt; 0 means nothing.", 0, 100_000
    )
    hook_min_similarity: float = number(
        0.3,
        "The least cosine between a prompt and a passage that a hook adds to it; a passage with "
        "half of the prompt's words is added too.",
        0,
        1,
        float,
    )
    receipt_days: float = number(
        30.0,
        "Days for which the receipts of contexts and reminders are kept; 0 keeps none.",
        0,
        3_650,
        float,
    )
    collect_stats: bool = flag(True, "Whether queries and saves are counted for the statistics.")
    slow_query_ms: float = number(
        500.0, "The time above which a query counts as slow, in milliseconds.", 0, 3_600_000, float
    )
    mcp_voice: Voice = choice(
        "agent",
        "Whose words the MCP tools on this machine may save: the user's as well, an agent's, or a "
        "stranger's, which wait for review.",
        VOICES,
    )
    mcp_max_tokens: int = number(
        8_000, "The largest answer of an MCP tool, in tokens.", 1_000, 1_000_000
    )
    mcp_tools: str = choice(
        "core",
        "Which arguments the definitions of the MCP tools show: the usual ones, or all. The tools "
        "take all of them in both cases.",
        ("core", "full"),
    )
    unload_after_seconds: float = number(
        60.0, "The idle time after which a server unloads the model.", 1, 10**9, float
    )
    # Not `host` and `port`, because Kubernetes sets BYHEART_PORT for a service named byheart.
    serve_host: str = text("127.0.0.1", "The address that the server listens on.")
    serve_port: int = number(8765, "The port that it listens on; 0 means any free port.", 0, 65535)
    serve_workers: int = number(
        0,
        "The number of processes that answer requests; 0 means one for each core, at most four.",
        0,
        64,
    )
    allowed_hosts: tuple[str, ...] = names(
        "Host names that the server accepts, besides those of this machine; `*` means any.",
        "a list of host names",
        "a host name",
        r"\*|\[[0-9a-f:.]+\]|[^\s/:\[\]*]+",
    )
    allowed_origins: tuple[str, ...] = names(
        "Origins of web pages that may call the server from a browser, besides its own.",
        "a list of origins such as https://example.com",
        "an origin such as https://example.com",
        r"https?://[^\s/*]+",
    )
    max_body_bytes: int = number(
        20_000_000, "The largest request body, in bytes.", 1_000, 2_000_000_000
    )
    max_requests_per_minute: int = number(
        6_000,
        "The number of requests per minute for each API key or address; 0 means no limit.",
        0,
        10**9,
    )
    max_concurrent_reads: int = number(
        4, "The number of concurrent reads; higher if a remote service embeds.", 1, 1000
    )
    max_concurrent_writes: int = number(4, "The number of concurrent writes.", 1, 1000)
    max_waiting_requests: int = number(
        256, "The number of waiting requests of each kind; further ones are refused.", 0, 100_000
    )
    max_connections: int = number(
        500,
        "The number of open connections, at most half of the system's limit. A further one closes "
        "the connection that is idle longest, or is refused.",
        1,
        1_000_000,
    )
    client_timeout_seconds: float = number(
        20.0,
        "The time limit for the head of a request, and for pauses while a client sends a body or "
        "reads an answer.",
        1,
        86_400,
        float,
    )
    files_dir: Path = path(
        _files_folder,
        "The only folder to which the server writes files for callers.",
        "`<data folder>/files`",
    )
    log_level: LogLevel = choice(
        "warning", "The lowest level of events that are logged.", get_args(LogLevel)
    )
    log_file: Path | None = path(None, "A file for the log; empty means stderr.")

    @property
    def recall_weights(self) -> tuple[float, float, float, float]:
        """Return the weights of relevance, importance, recency and frequency."""
        return (
            self.recall_relevance_weight,
            self.recall_importance_weight,
            self.recall_recency_weight,
            self.recall_frequency_weight,
        )


FIELDS: dict[str, Field[Any]] = {each.name: each for each in fields(Settings)}
RULES: dict[str, Rule] = {key: each.metadata["rule"] for key, each in FIELDS.items()}


def setting_keys() -> tuple[str, ...]:
    """Return the key of every setting, in the order of the reference."""
    return tuple(RULES)


def variable_of(key: str) -> str:
    """Return the name of a setting's environment variable."""
    return PREFIX + key.upper()


def render_reference() -> str:
    """Write the table of docs/settings.md."""
    rows = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for key, rule in RULES.items():
        default = rule.default_text or _default_text(FIELDS[key].default)
        rows.append(f"| `{key}` | {default} | {rule.allowed} | {rule.doc} |")
    return "\n".join(rows) + "\n"


def _default_text(value: object) -> str:
    if value in (None, "", ()):
        return "none" if value is None else "empty"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
