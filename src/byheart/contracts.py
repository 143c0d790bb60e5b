"""The sockets: what the rooms promise one another, in as few methods as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

from byheart.model import (
    BenchRun,
    Chunk,
    Entity,
    Filter,
    Finding,
    Heading,
    HistoryEntry,
    IndexState,
    Inventory,
    Memory,
    MemoryFields,
    Merged,
    Removal,
    SaveResult,
    Session,
    SessionStats,
    Similar,
    SlowQuery,
    Status,
    Token,
    Workspace,
)

if TYPE_CHECKING:  # numpy takes a tenth of a second to import: `byheart --help` does without
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"


class Model(NamedTuple):
    """The identity of an embedding model; vectors of two models are never compared."""

    name: str
    dimensions: int


class EmbedderSpec(NamedTuple):
    """How an embedder is opened again: what the settings of the same names would say."""

    provider: str
    model: str


class DedupKey(NamedTuple):
    """What makes two saved texts the same memory.

    With a `client_id`, that alone within its session; of turns without one no two are the same.
    """

    space: str
    session_id: str | None
    kind: str
    content_hash: str
    is_turn: bool = False
    client_id: str | None = None


def key_of(memory: Memory) -> DedupKey:
    """Say what makes a memory the same as another."""
    return DedupKey(
        memory.space,
        memory.session_id,
        memory.kind,
        memory.content_hash,
        memory.role is not None,
        memory.client_id,
    )


class TokenCounter(Protocol):
    """Find where the tokens of a text begin: the measure of chunks, windows and budgets."""

    def token_starts(self, text: str) -> Sequence[int]:
        """Give the character offset of each token's first character, ascending."""
        ...


class Embedder(TokenCounter, Protocol):
    """Turn text into unit vectors of one named model."""

    @property
    def name(self) -> str:
        """Name the model; vectors of two names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Give the length of every vector."""
        ...

    @property
    def window_tokens(self) -> int:
        """Give how many tokens of text one vector can see."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: one unit-length float32 row per text, in the order given."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question: one unit-length float32 vector."""
        ...


@runtime_checkable
class Unloadable(Protocol):
    """Something that can let go of memory and take it up again by itself."""

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Let go of what can be loaded again, unless it was used within so many seconds."""
        ...


@runtime_checkable
class NamesCounter(Protocol):
    """What an embedder adds that knows how its tokens are counted: word by word.

    Then a text never has more of them than its lines have together.
    """

    @property
    def token_counter(self) -> str:
        """Name what counts tokens."""
        ...


@runtime_checkable
class MayBeAway(Protocol):
    """What an embedder adds whose name cannot be asked for without fetching it first."""

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so, by looking only."""
        ...


@runtime_checkable
class Reopenable(Protocol):
    """What an embedder adds that others can open again by its description."""

    @property
    def spec(self) -> EmbedderSpec | None:
        """Say how it is opened again, as far as that is known before it is."""
        ...


@runtime_checkable
class RemembersQueries(Protocol):
    """What an embedder adds that keeps the vectors of the latest questions."""

    def query_cache(self) -> tuple[int, int]:
        """Count the questions that were remembered, and those that were not."""
        ...

    def embed_once(self, text: str) -> Vectors:
        """Embed a question that nobody asked: neither remembered nor counted."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """What one vector was made from (a hash of the text embedded) and the vector, once made."""

    text_hash: bytes
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory ready to be written: chunked, noticed, and embedded as far as that was possible."""

    memory: Memory
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[Window, ...], ...]
    derived: tuple[str, ...]
    who: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A memory as it is to be, and the version it was made from; `text` only if that changed."""

    memory: Memory
    expected_version: int
    derived: tuple[str, ...]
    who: str
    changes: Mapping[str, tuple[Any, Any]]
    text: tuple[tuple[Chunk, ...], tuple[tuple[Window, ...], ...]] | None


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that waits for its vectors, with what is needed to make them."""

    chunk_no: int
    chunk: Chunk
    before: Chunk | None
    title: str | None


class Ranked(NamedTuple):
    """The chunks that one leg found, best first, with their scores beside them."""

    chunk_nos: NDArray[np.int64]
    scores: NDArray[np.float64]


class Background(NamedTuple):
    """The cosines that a question has with chunks at large, and how many chunks there are."""

    mean: float
    deviation: float
    chunks: int


class Coverage(NamedTuple):
    """How rare the words are that a chunk has of a question, all of its words, and the rarest."""

    found: float
    asked: float
    rarest: float


class Double(NamedTuple):
    """Two memories that say almost the same, by their ids, the older one first."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with the fields of its memory, as the store holds them."""

    chunk_no: int
    chunk: Chunk
    memory: MemoryFields


class Standing(NamedTuple):
    """What recall weighs of a memory; `used_at` is its last access, or else its last change."""

    memory_id: str
    text_id: str
    summary: str
    importance: float
    used_at: datetime
    access_count: int


class SaidTurn(NamedTuple):
    """Who said something, and what it was in a sentence."""

    role: str
    summary: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may be put into a prompt; `vectors` has a row for each of its windows."""

    found: FoundChunk
    score: float
    vectors: Vectors | None


@dataclass(frozen=True, slots=True)
class StoredText:
    """One text of a memory as the store keeps it; `vectors` has each chunk's, by model name."""

    memory: Memory
    since_at: datetime
    superseded_at: datetime | None
    chunks: tuple[Chunk, ...]
    vectors: tuple[Mapping[str, tuple[Window, ...]], ...]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory with its whole life: its earlier texts, oldest first, and what happened to it."""

    text: StoredText
    earlier: tuple[StoredText, ...]
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity and the other spellings that count as it."""

    space: str
    name: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TombstoneRecord:
    """The hash of a text that was forgotten for good."""

    space: str
    content_hash: str
    at: datetime


Record = MemoryRecord | EntityRecord | TombstoneRecord


class Loaded(NamedTuple):
    """What became of a record, the id it has in the store, and how many texts were refused."""

    status: Literal["imported", "unchanged", "refused"]
    memory_id: str
    refused_texts: int = 0


class Dump(Protocol):
    """Everything that a store or a space holds at one moment, record by record."""

    @property
    def models(self) -> Sequence[Model]:
        """List the models that vectors may be of, in the order in which the store met them."""
        ...

    @property
    def model(self) -> str | None:
        """Name the model that the store searches with."""
        ...

    @property
    def memory_count(self) -> int:
        """Count the memories."""
        ...

    def records(self) -> Iterator[Record]:
        """Give entities, then memories, then tombstones, each in the order of the store."""
        ...


class Reader(Protocol):
    """One consistent view of the store: what it ranks and what it fetches belong together."""

    def rank_by_words(self, terms: Sequence[str], where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have any of the terms by BM25, best first, ties by age."""
        ...

    def rank_by_syntax(self, query: str, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that a raw FTS5 query matches, best first."""
        ...

    def rank_by_vector(self, vector: Vectors, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have vectors by the cosine of their best window, best first."""
        ...

    def word_scores(
        self, terms: Sequence[str], chunk_nos: NDArray[np.int64], where: Filter
    ) -> NDArray[np.float64]:
        """Give the BM25 score of each chunk; 0 if it has none of the terms."""
        ...

    def coverage(self, terms: Sequence[str], chunk_no: int, where: Filter) -> Coverage:
        """Tell how much of a question's words a chunk has, by their rarity."""
        ...

    def background(self, vector: Vectors, where: Filter) -> Background:
        """Tell which cosines a question has with the chunks at large."""
        ...

    def neighbours(self, chunk_nos: NDArray[np.int64], where: Filter) -> NDArray[np.int64]:
        """Name the two turns before each chunk and the two after it, nearest first; 0 for none."""
        ...

    def similarities(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]:
        """Give the cosine of each chunk's best window; chunks without vectors are left out."""
        ...

    def resembling(self, memory_id: str, space: str, least: float, limit: int) -> list[Similar]:
        """Find memories that say almost the same and are seen where this one is, best first."""
        ...

    def doubles(self, where: Filter, least: float) -> list[Double]:
        """Pair memories of one kind and session that say almost the same, best first."""
        ...

    def weigh_terms(self, terms: Sequence[str], chunk_no: int, where: Filter) -> dict[str, float]:
        """Tell what each term contributed to a chunk's BM25 score."""
        ...

    def owners(self, chunk_nos: Sequence[int]) -> list[int]:
        """Name the memory of each chunk by its internal number."""
        ...

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings that each chunk stands under."""
        ...

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        ...

    def sample(self, where: Filter, count: int, seed: int) -> list[FoundChunk]:
        """Fetch some chunks at random, the same ones for the same seed while nothing changes."""
        ...

    def chunks_of(self, memory_id: str, space: str) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order."""
        ...

    def memory(self, memory_id: str, space: str) -> Memory | None:
        """Fetch one memory whole."""
        ...

    def at_path(self, path: str, space: str) -> str | None:
        """Name the memory that a path belongs to, the latest if there are several."""
        ...

    def token_counts(self, text_ids: Sequence[str]) -> dict[str, int]:
        """Give how many tokens the texts of memories have, as counted when they were saved."""
        ...

    def standings(self, memory_nos: Sequence[int]) -> list[Standing]:
        """Fetch what recall weighs of memories, in the order asked."""
        ...

    def memories(self, where: Filter, limit: int, offset: int) -> tuple[list[Memory], int]:
        """List memories, latest iteration and latest first, and count all that match."""
        ...

    def turns(
        self, where: Filter, roles: Sequence[str], limit: int, offset: int, *, latest: bool
    ) -> list[Memory]:
        """List turns, oldest first; with `latest`, `offset` counts from the end."""
        ...

    def count_turns(self, where: Filter, roles: Sequence[str]) -> int:
        """Count the turns that match."""
        ...

    def salient_turns(self, where: Filter, roles: Sequence[str], limit: int) -> list[SaidTurn]:
        """Pick the first turn and those that matter most, in order."""
        ...

    def running_summary(self, session_id: str, space: str) -> Memory | None:
        """Fetch the summary of a session, hidden or not."""
        ...

    def emitted(self, space: str, session_id: str) -> list[str]:
        """Give what a session, or nobody's in particular, was given lately and still finds."""
        ...

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that a session itself was given lately, since a moment."""
        ...

    def pinned(self, where: Filter) -> list[Memory]:
        """List what is pinned, in the order in which it was."""
        ...

    def vectors(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        """Give the vectors of chunks, a row for each window; chunks without any are left out."""
        ...

    def ids(self, where: Filter, untouched_since: datetime | None = None) -> list[str]:
        """List the ids of all memories that match, oldest first."""
        ...

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """Tell what happened to a memory, oldest first; nothing for one that never was."""
        ...

    def created(self, memory_ids: Sequence[str], space: str) -> dict[str, datetime]:
        """Say when memories were made, forgotten ones too; unknown ids are left out."""
        ...

    def sessions_of(self, text_ids: Sequence[str], space: str) -> dict[str, str | None]:
        """Name the session of each text, also of a forgotten memory; unknown ids are left out."""
        ...

    def forgotten_at(self, memory_id: str, space: str) -> datetime | None:
        """Say when a memory was hidden, if it is."""
        ...

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        ...

    def session_stats(self, where: Filter) -> SessionStats:
        """Count what a session holds, or all of them; what is global belongs to none."""
        ...

    def latest(self, where: Filter, task_code: str | None, limit: int) -> list[Memory]:
        """List memories, the latest first; with a task, its own and those of none."""
        ...

    def copies_of(self, memory_ids: Sequence[str], space: str) -> list[tuple[str, str]]:
        """List what memories were promoted to and still holds: the copy, and its source."""
        ...

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        ...

    def model(self) -> Model | None:
        """Name the model whose vectors are ranked."""
        ...

    def state(self, space: str) -> IndexState:
        """Count what a space holds."""
        ...


class Generations(Protocol):
    """Vectors of several models side by side: one in use, one coming, those before it.

    Chunks count here whether they are found or not: earlier texts and forgotten ones come back.
    """

    def spec_of(self, model: Model) -> EmbedderSpec | None:
        """Say how an embedder of a model is opened again, if that was noted."""
        ...

    def note(self, model: Model, spec: EmbedderSpec | None) -> None:
        """Make a model known, and how its embedder is opened again."""
        ...

    def begin(self, model: Model) -> None:
        """Say which model comes next, so that its vectors do not look unused."""
        ...

    def lacking(self, model: Model, after: int, limit: int) -> list[PendingChunk]:
        """List chunks without vectors of a model, by number, behind the number `after`."""
        ...

    def count_lacking(self, model: Model) -> tuple[int, int]:
        """Count the chunks without vectors of a model, and all chunks."""
        ...

    def add(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a model where there are none, and count the chunks."""
        ...

    def switch(self, model: Model, most_lacking: int | None) -> int | None:
        """Search by another model from now on, unless too many chunks lack vectors of it.

        Give how many wait for vectors now, or `None` if nothing was switched.
        """
        ...

    def previous(self) -> Model | None:
        """Name the model that was in use before the last switch, if its vectors are there."""
        ...

    def count_unused(self) -> int:
        """Count the vectors of all models but the one in use."""
        ...

    def drop_unused(self, *, next_too: bool) -> int:
        """Remove vectors of models not in use (what is coming only if asked), and count them."""
        ...


class Count(NamedTuple):
    """What a number counts: in which space (`""`: the whole store), what, of which kind."""

    space: str
    name: str
    kind: str
    bucket: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted: `counts` add up, of `latest` the last stands, `slowest` are by space."""

    counts: dict[Count, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    slowest: dict[str, list[SlowQuery]] = field(default_factory=dict)
    since: datetime | None = None


class Ledger(Protocol):
    """Where the counts of all processes come together. It holds no truth, so it never raises."""

    def add(self, tally: Tally) -> bool:
        """Add what one process has counted; say whether that could be done."""
        ...

    def read(self, space: str) -> Tally:
        """Give what was counted in a space and for the whole store."""
        ...

    def reset(self, space: str) -> None:
        """Start anew for a space and the whole store."""
        ...

    def clear_queries(self) -> None:
        """Leave no text of any query behind, also of those that other processes add later."""
        ...

    def keep_run(self, run: BenchRun) -> None:
        """Keep the figures of a bench, and the latest ones before it."""
        ...

    def runs(self, space: str) -> Sequence[BenchRun]:
        """Give the figures of benches that are kept, oldest first."""
        ...


class Tokens(Protocol):
    """Who may come in over the network, by the hash of a secret; the secret is kept nowhere."""

    def add(self, token: Token, secret_hash: bytes) -> None:
        """Add a token, unless its name is taken."""
        ...

    def list(self, space: str | None) -> list[Token]:
        """List the tokens of a space, or of all, oldest first."""
        ...

    def find(self, secret_hash: bytes) -> Token | None:
        """Find the token whose secret has this hash, as every process has it at this moment."""
        ...

    def remove(self, token_id: str) -> bool:
        """Remove a token; say whether it was there."""
        ...

    def note_use(self, token_id: str, at: datetime) -> None:
        """Note when a token was used, now or a little later; never wait and never fail."""
        ...


class FileStamp(NamedTuple):
    """How a file looks without reading it; equal stamps mean an equal file."""

    size: int
    mtime_ns: int
    inode: int


class KnownFile(NamedTuple):
    """A file of a workspace as it was when it was read last."""

    memory_id: str | None
    stamp: FileStamp
    file_hash: bytes
    trouble: str | None
    may_pass: bool
    gone: bool


class AlikeFile(NamedTuple):
    """A file that holds the same as another, or did when it was last there."""

    workspace_no: int
    path: str
    gone: bool


@dataclass(frozen=True, slots=True)
class FileChange:
    """What is to be noted of a file: its new text (`draft`), another place, why it is unreadable.

    With none of these it holds what it held before, or with `no_text` nothing to remember.
    `may_pass` says that it may become readable without being changed.
    """

    path: str
    stamp: FileStamp
    read_at: datetime
    file_hash: bytes = b""
    draft: Draft | None = None
    moved_from: str | None = None
    no_text: bool = False
    trouble: str | None = None
    may_pass: bool = False


FileStatus = Literal["indexed", "moved", "unchanged", "removed", "forgotten", "failed"]


class Workspaces(Protocol):
    """Which folders are memory, how their files looked, and who keeps them fresh."""

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all, by their roots."""
        ...

    def add(self, space: str, root: str) -> int:
        """Make a folder a workspace, if it is none yet; give its number."""
        ...

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give what is known of a file, or of all files in a folder; `""` means the root."""
        ...

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files of a space's workspaces that hold, or lately held, the same bytes."""
        ...

    def apply(
        self, workspace_no: int, changes: Sequence[FileChange], model: Model | None
    ) -> list[FileStatus]:
        """Note files as they are now, in one transaction; say what became of each."""
        ...

    def hide(self, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
        """Hide the memories of files that are gone, if they still are as known; count them."""
        ...

    def purge(self, gone_before: datetime, limit: int) -> int:
        """Take out memories whose files have been gone since before some moment; count them."""
        ...

    def finish(self, workspace_no: int, at: datetime) -> None:
        """Note that the whole workspace was looked at."""
        ...

    def drop(self, workspace_no: int) -> int:
        """Let go of a workspace and hide its memories; count them."""
        ...

    def claim(self, workspace_no: int, watcher: str, stale_seconds: float) -> bool:
        """Take on keeping a workspace fresh, unless another process does so, or it was dropped."""
        ...

    def beat(self, workspace_no: int, watcher: str, behind: int, trouble: str | None) -> bool:
        """Say that it is still being kept fresh; give `False` if another process has taken over."""
        ...

    def release(self, workspace_no: int, watcher: str) -> None:
        """Stop keeping it fresh, so that another process may."""
        ...


class Storage(Protocol):
    """Where memories live. Every write is one transaction: all of it or nothing."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        ...

    @property
    def generations(self) -> Generations:
        """Give the vectors of several models side by side."""
        ...

    @property
    def tokens(self) -> Tokens:
        """Give the tokens that let programs in over the network."""
        ...

    @property
    def workspaces(self) -> Workspaces:
        """Give the folders whose files are memories."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        ...

    def searching(self) -> AbstractContextManager[Reader]:
        """Open such a view for ranking and counting as well."""
        ...

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; a text already there in its space, session and kind is left as it is.

        A turn whose client id has another text is a `Conflict`: then nothing is written.
        """
        ...

    def revise(self, revision: Revision, model: Model | None) -> SaveResult:
        """Change a memory, unless it is no longer of the version the revision was made from."""
        ...

    def supersede(
        self, old: str, new: str | None, space: str, who: str, reason: str | None
    ) -> None:
        """Say which memory holds instead of another, or with `None` that it holds again."""
        ...

    def forget(
        self, memory_ids: Sequence[str], space: str, who: str, reason: str | None
    ) -> list[str]:
        """Hide memories with all their texts; give the ids of those that were not hidden before."""
        ...

    def restore(self, memory_id: str, space: str, who: str) -> bool:
        """Show a hidden memory again; say whether it had been hidden."""
        ...

    def restore_session(self, session_id: str, space: str, who: str) -> list[str]:
        """Show again what was hidden last of a session; give the ids."""
        ...

    def forget_emitted(self, space: str, session_id: str) -> None:
        """Let go of what was noted as given out to a session."""
        ...

    def merge(
        self, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
    ) -> Merged:
        """Give one memory the labels and accesses of others as well, and hide those."""
        ...

    def pin(self, memory_id: str, space: str, who: str, *, pinned: bool) -> None:
        """Have a memory stand first in every prompt that it can be seen in, or no longer."""
        ...

    def rename_entity(self, name: str, new_name: str, space: str) -> Entity:
        """Give an entity another name; the old one stays an alias."""
        ...

    def merge_entities(self, names: Sequence[str], into: str, space: str) -> Entity:
        """Make one entity of several; the other names stay aliases."""
        ...

    def remove(self, memory_ids: Sequence[str], space: str, *, tombstones: bool) -> Removal:
        """Take memories out for good with every trace of them, and look whether any is left."""
        ...

    def prune(self, expired_before: datetime, limit: int) -> int:
        """Take out memories that ran out before some moment, and count them."""
        ...

    def count_accesses(self, memory_ids: Sequence[str], space: str) -> None:
        """Count that memories were given out; cheap, and made up for later while others write."""
        ...

    def note_emitted(self, chunk_ids: Sequence[str], space: str, session_id: str | None) -> None:
        """Note which passages, or whole memories, were given out for a prompt; never wait."""
        ...

    def settle_emitted(self) -> None:
        """See that what was noted so shows to readers, if nobody else writes just now."""
        ...

    def known(self, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
        """Find which texts are stored already."""
        ...

    def model(self) -> Model | None:
        """Name the model whose vectors the store holds; `None` until it holds any."""
        ...

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        ...

    def pending(self, limit: int) -> list[PendingChunk]:
        """List chunks that still lack vectors, oldest first."""
        ...

    def count_pending(self) -> int:
        """Count the chunks that still lack vectors, in all spaces."""
        ...

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        ...

    def dumping(self, space: str | None, *, vectors: bool) -> AbstractContextManager[Dump]:
        """Open everything that one space, or all of them, hold at this moment."""
        ...

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Make models known whose vectors will be loaded; a store without one takes `active`."""
        ...

    def load(self, records: Sequence[Record], *, force: bool) -> list[Loaded]:
        """Write records as they were in another store; what is known or was erased stays out."""
        ...

    def finish_loading(self, renamed: Mapping[str, str], entities: Sequence[EntityRecord]) -> None:
        """Drop entities that nothing names, and point to memories by the ids they have here."""
        ...

    def tombstoned(self, keys: Sequence[DedupKey]) -> set[DedupKey]:
        """Find which texts were forgotten for good."""
        ...

    def taken(self, memory_ids: Sequence[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        ...

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment, while others go on using it."""
        ...

    def refresh(self) -> None:
        """Bring what is derived up to date, so that the next search, in any process, is fast."""
        ...

    def status(self, space: str) -> Status:
        """Describe the store."""
        ...

    def inventory(self, space: str) -> Inventory:
        """Count what a space holds by kind, and what the store's files take."""
        ...

    @property
    def ledger(self) -> Ledger | None:
        """Give the place for counts; `None` where nothing can be written."""
        ...

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Have work on the index reported as it is done: what it was, and its seconds."""
        ...

    def inspect(self) -> list[Finding]:
        """Check what searches go by, in little time; change nothing."""
        ...

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and everything derived from it; mend what can be derived if asked to."""
        ...

    def rebuild(self) -> None:
        """Make everything derived anew from text, metadata and vectors."""
        ...

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...
