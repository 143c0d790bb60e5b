"""Vectorizing: whatever the embedder can do now, and the reason for what it cannot.

Nothing here raises because a provider is away: a text without vectors is saved and found by its
words, the answer says why, and the vectors are made up for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from byheart.contracts import (
    Embedder,
    EmbedderSpec,
    MayBeAway,
    Model,
    NamesCounter,
    Reader,
    RemembersFailure,
    RemembersQueries,
    Reopenable,
    Storage,
    TokenCounter,
    Unloadable,
    Vectors,
    Window,
)
from byheart.embedding import measure_unrelated, to_unit_length, window_texts
from byheart.errors import (
    ByheartError,
    EmbedderUnavailable,
    EmbeddingError,
    InvalidInput,
    StoreError,
)
from byheart.model import ECHO, HEADING_SEPARATOR, UNEMBEDDED, Chunk

Reopen = Callable[[EmbedderSpec], Embedder]

_HASH_BYTES = 16
# What every model can embed.
_PLAIN = "a text"


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with what the embedder is shown around it: its title and the text before it."""

    chunk: Chunk
    before: str
    title: str | None


def passages(chunks: Sequence[Chunk], title: str | None) -> list[Passage]:
    """Pair each chunk that is embedded with the one before it, if under the same headings."""
    befores: list[Chunk | None] = [None, *chunks]
    return [
        Passage(chunk, previous_text(chunk, before), title)
        for chunk, before in zip(chunks, befores, strict=False)
        if chunk.chunk_type not in UNEMBEDDED
    ]


def by_chunk(
    chunks: Sequence[Chunk], windows: Iterator[tuple[Window, ...]]
) -> tuple[tuple[Window, ...], ...]:
    """Give each chunk the next windows, and none to those that are not embedded."""
    return tuple(() if chunk.chunk_type in UNEMBEDDED else next(windows) for chunk in chunks)


def previous_text(chunk: Chunk, before: Chunk | None) -> str:
    """Give the text before a chunk, if it belongs to the same section."""
    if before is None or before.headings != chunk.headings or before.chunk_type == ECHO:
        return ""
    return before.content


class Made(NamedTuple):
    """What became of passages: their windows, the model of these, and why vectors are missing.

    With a model and a reason, some texts were refused, and their windows have no vectors.
    """

    windows: list[tuple[Window, ...]]
    model: Model | None
    reason: str | None


class Asked(NamedTuple):
    """A question's vector beside the reader it may be put to, and what the answer should say.

    `unrelated` is the cosine that its model has for texts with nothing in common.
    """

    reader: Reader
    vector: Vectors | None
    degraded: str | None
    remark: str | None
    unrelated: float


class Counter(NamedTuple):
    """What counts tokens, its name, and whether it counts word by word."""

    tokens: TokenCounter
    name: str
    by_word: bool


class _Chosen(NamedTuple):
    """The embedder to use, the model its vectors must be of, and whether the settings differ."""

    embedder: Embedder
    stored: Model | None
    remark: str | None

    def foreign(self) -> str | None:
        """Say that it is not of the store's model after all, if so."""
        mine = model_of(self.embedder)
        if self.stored is None or self.stored == mine:
            return None
        return (
            f"the store's vectors are of model {self.stored.name}, but the embedder is {mine.name} "
            "(switch the store to it with: byheart reembed)"
        )


class Maker:
    """Make vectors with one embedder, each text's once, and count what was made and reused."""

    def __init__(self, storage: Storage, embedder: Embedder, overlap_tokens: int) -> None:
        self._storage = storage
        self._embedder = embedder
        self._overlap_tokens = overlap_tokens
        self.model = model_of(embedder)
        self.made = self.reused = 0
        self.refusal: str | None = None

    def windows(
        self, wanted: Sequence[Passage], *, only_known: bool = False
    ) -> list[tuple[Window, ...]]:
        """Embed passages, except for what was embedded before, or leave out all but that.

        The windows of texts that the embedder refuses have no vectors; `refusal` says why.
        """
        texts = [self._texts(each) for each in wanted]
        hashes = {text: _hash(text) for part in texts for text in part}
        known = self._storage.vectors_of(self.model, list(hashes.values()))
        missing = [text for text, text_hash in hashes.items() if text_hash not in known]
        if missing and not only_known:
            made = self._make(missing)
            known |= {hashes[text]: vector for text, vector in made.items()}
            self.made += len(made)
        self.reused += sum(map(len, texts)) - len(missing)
        return [
            tuple(Window(hashes[text], known.get(hashes[text])) for text in part) for part in texts
        ]

    def _make(self, texts: Sequence[str], *, is_sound: bool = False) -> dict[str, Vectors]:
        """Embed texts by halves until those that the embedder refuses stand alone."""
        try:
            return dict(zip(texts, self._embed(texts), strict=True))
        except EmbedderUnavailable:
            raise
        except EmbeddingError as error:
            if not is_sound:
                self._embed([_PLAIN])  # if that is refused too, it is not the texts
            if len(texts) == 1:
                self.refusal = str(error)
                return {}
        half = len(texts) // 2
        parts = (texts[:half], texts[half:])
        return {
            text: vector
            for part in parts
            for text, vector in self._make(part, is_sound=True).items()
        }

    def _embed(self, texts: Sequence[str]) -> Vectors:
        with _own_errors():
            made = self._embedder.embed(texts)
        return _checked(made, (len(texts), self.model.dimensions), self.model.name)

    def _texts(self, passage: Passage) -> list[str]:
        outer = (passage.title, *(heading.title for heading in passage.chunk.headings))
        return window_texts(
            passage.chunk.content,
            before=passage.before,
            # A document's title is often its first heading as well.
            header=HEADING_SEPARATOR.join(dict.fromkeys(each for each in outer if each)),
            tokens=self._embedder,
            window_tokens=self._embedder.window_tokens,
            overlap_tokens=self._overlap_tokens,
        )


class Vectorizer:
    """Make vectors of the store's model: by the configured embedder, or by one of that model.

    The settings name the wanted model, the store knows the one whose vectors it holds. Until
    `reembed` has made the one the other, `reopen` opens an embedder of the store's.
    """

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder,
        overlap_tokens: int,
        reopen: Reopen | None = None,
    ) -> None:
        self._storage = storage
        self._embedder = embedder
        self._overlap_tokens = overlap_tokens
        self._reopen = reopen
        self._reopened: dict[EmbedderSpec, Embedder] = {}
        self._noted: set[Model] = set()
        self._unrelated: dict[Model | None, float] = {}
        # The model that the store held at the last question, looked at again with each.
        self._held: Model | None = None
        self.on_embedded: Callable[[int, int], None] = lambda _made, _reused: None

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so, by looking only."""
        try:
            chosen = self._choose()
            return _away(chosen.embedder) or chosen.foreign()
        except EmbeddingError as error:
            return str(error)

    def remark(self) -> str | None:
        """Say that the settings name another model than the one that serves, if that is so."""
        try:
            return self._choose().remark
        except EmbeddingError:
            return None

    def wanted_name(self) -> str | None:
        """Name the model that the settings name, as far as that is known without fetching it."""
        if _away(self._embedder) is None:
            with suppress(EmbeddingError):
                return self._embedder.name
        spec = _spec_of(self._embedder)
        return None if spec is None or spec.provider == "none" else f"{spec.provider}/{spec.model}"

    def tokens(self) -> TokenCounter:
        """Give the measure of chunks: the tokens of the store's model."""
        try:
            return self._choose().embedder
        except EmbeddingError:
            return self._embedder

    def unload(self, idle_seconds: float) -> None:
        """Let go of the memory that idle models take, until the next text."""
        for embedder in (self._embedder, *self._reopened.values()):
            if isinstance(embedder, Unloadable):
                embedder.unload(idle_seconds)

    def forget_failures(self) -> None:
        """Look for providers again at the next text: something was repaired."""
        for embedder in (self._embedder, *self._reopened.values()):
            if isinstance(embedder, RemembersFailure):
                embedder.forget_failure()

    def counter(self) -> Counter:
        """Give that measure with its name: a model, or an estimate."""
        try:
            tokens = self._choose().embedder
        except EmbeddingError:
            tokens = self._embedder
        if isinstance(tokens, NamesCounter):
            return Counter(tokens, tokens.token_counter, by_word=True)
        return Counter(tokens, tokens.name, by_word=False)

    @contextmanager
    def asking(self, question: str | None, *, remember: bool = True) -> Iterator[Asked]:
        """Open the store for a search, with the question's vector under the model it holds then."""
        with ExitStack() as stack:
            assumed = self._held
            while True:
                vector, model, degraded, remark = self._embed_question(question, remember, assumed)
                if question and vector is None and assumed is not None:
                    assumed = None  # the store may hold another model by now
                    continue
                reader = stack.enter_context(self._storage.searching())
                if vector is None:
                    break
                held = reader.model()
                self._held = assumed = held if held == model else None
                if held in (None, model):
                    break
                stack.close()  # switched between the two: vectors of two models do not compare
            yield Asked(reader, vector, degraded, remark, self._unrelated.get(model, 0.0))

    def query_vector(self, text: str) -> tuple[Vectors | None, str | None]:
        """Embed a question, or say why that cannot be done."""
        vector, _, reason, _ = self._embed_question(text, True, None)
        return vector, reason

    def _embed_question(
        self, text: str | None, remember: bool, held: Model | None
    ) -> tuple[Vectors | None, Model | None, str | None, str | None]:
        if not text:
            return None, None, None, None
        try:
            chosen = self._choose(held)
            reason = chosen.foreign()
            if reason is None:
                model = model_of(chosen.embedder)
                vector = _embed_query(chosen.embedder, text, remember)
                vector = _checked(vector, (model.dimensions,), model.name)
                self._measure_unrelated(chosen.embedder, model)
                return vector, model, None, chosen.remark
        except EmbeddingError as error:
            reason = str(error)
        return None, None, reason, None

    def _measure_unrelated(self, embedder: Embedder, model: Model) -> None:
        """Learn once which cosine means nothing; if that fails, the next question tries again."""
        if model not in self._unrelated:
            with suppress(EmbeddingError, ValueError):
                self._unrelated[model] = measure_unrelated(embedder)

    def windows(self, wanted: Sequence[Passage]) -> Made:
        """Embed passages, or say why vectors are missing from what is returned."""
        try:
            chosen = self._choose()
            reason = chosen.foreign()
            if reason is None:
                maker = Maker(self._storage, chosen.embedder, self._overlap_tokens)
                made = maker.windows(wanted)
                self.on_embedded(maker.made, maker.reused)
                self._note(chosen.embedder, maker.model)
                return Made(made, maker.model, maker.refusal)
        except EmbeddingError as error:
            reason = str(error)
        return Made([() for _ in wanted], None, reason)

    def known_windows(self, wanted: Sequence[Passage]) -> Made:
        """Give the vectors of passages that were embedded before; those of others come later."""
        try:
            chosen = self._choose()
            if chosen.foreign() is None:
                maker = Maker(self._storage, chosen.embedder, self._overlap_tokens)
                return Made(maker.windows(wanted, only_known=True), maker.model, None)
        except EmbeddingError:  # whoever makes the missing ones is told
            pass
        return Made([() for _ in wanted], None, None)

    def wanted_maker(self) -> Maker:
        """Open whatever makes vectors of the wanted model, fetching that if need be."""
        maker = Maker(self._storage, self._embedder, self._overlap_tokens)
        spec = _spec_of(self._embedder)
        if spec is not None:
            self._storage.generations.note(maker.model, spec)
        return maker

    def _choose(self, held: Model | None = None) -> _Chosen:
        """Choose the embedder that is of the store's model, and say if it is not the wanted one.

        Models that are neither at hand nor surely needed are not fetched to look at their names.
        Who looks at the store afterwards may say which model it held before.
        """
        stored, away = held or self._storage.model(), _away(self._embedder)
        if stored is None or (away is None and model_of(self._embedder) == stored):
            return _Chosen(self._embedder, stored, None)
        mine, recorded = _spec_of(self._embedder), self._storage.generations.spec_of(stored)
        switched_off = mine is not None and mine.provider == "none"
        if self._reopen is None or recorded is None or recorded == mine or switched_off:
            return _Chosen(self._embedder, stored, None)
        earlier, reason = self._earlier(stored, recorded, self._reopen)
        if earlier is None and away is not None:
            return _Chosen(self._embedder, stored, None)
        if earlier is None:
            raise EmbedderUnavailable(
                f"{self._difference(stored)}, and an embedder of the former cannot be opened: "
                f"{reason}",
                "switch to the latter with: byheart reembed",
            )
        remark = f"{self._difference(stored)}: switch with: byheart reembed"
        return _Chosen(earlier, stored, remark)

    def _earlier(
        self, stored: Model, spec: EmbedderSpec, reopen: Reopen
    ) -> tuple[Embedder | None, str | None]:
        """Open an embedder of the store's model again, or say why that cannot be done."""
        try:
            if spec not in self._reopened:
                self._reopened[spec] = reopen(spec)
            embedder = self._reopened[spec]
            reason = _away(embedder)
            if reason is None and model_of(embedder) != stored:
                reason = f"{spec.provider}/{spec.model} is {embedder.name} by now"
        except (EmbeddingError, InvalidInput) as error:
            reason = str(error)
        return (embedder, None) if reason is None else (None, reason)

    def _difference(self, stored: Model) -> str:
        return (
            f"the store's vectors are of model {stored.name}, but the settings name "
            f"{self.wanted_name()}"
        )

    def _note(self, embedder: Embedder, model: Model) -> None:
        """Leave word of how others can open an embedder of the store's model."""
        spec = _spec_of(embedder)
        if spec is not None and model not in self._noted:
            with suppress(StoreError):  # a convenience for later: no reason to fail a save
                if self._storage.generations.spec_of(model) != spec:
                    self._storage.generations.note(model, spec)
                self._noted.add(model)


def _embed_query(embedder: Embedder, text: str, remember: bool) -> Vectors:
    with _own_errors():
        if not remember and isinstance(embedder, RemembersQueries):
            return embedder.embed_once(text)
        return embedder.embed_query(text)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Take what an embedder of the caller's own raises for an error of ours."""
    try:
        yield
    except ByheartError:
        raise
    except Exception as error:  # whatever code that is not ours may raise
        raise EmbeddingError(f"the embedder failed: {error}") from error


def _checked(vectors: Vectors, shape: tuple[int, ...], name: str) -> Vectors:
    """Refuse what would make later searches fail, or rank by something else than direction."""
    if vectors.shape != shape:
        raise EmbeddingError(
            f"the embedder {name} gave vectors of shape {vectors.shape} instead of {shape}"
        )
    return to_unit_length(vectors, name)


def model_of(embedder: Embedder) -> Model:
    """Name the model of an embedder."""
    return Model(embedder.name, embedder.dimensions)


def _spec_of(embedder: Embedder) -> EmbedderSpec | None:
    return embedder.spec if isinstance(embedder, Reopenable) else None


def _away(embedder: Embedder) -> str | None:
    return embedder.unavailable() if isinstance(embedder, MayBeAway) else None


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_HASH_BYTES]
