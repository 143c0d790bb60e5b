"""Make vectors as far as the embedder can, and say why other vectors are missing.

An unavailable provider raises no error here. A text without vectors is saved and found by its
words, the answer says why, and its vectors are made later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

from byheart.contracts import (
    Embedder,
    EmbedderSpec,
    Model,
    Models,
    NamesCounter,
    Reader,
    RemembersFailure,
    RemembersQueries,
    Storage,
    TokenCounter,
    Unloadable,
    Vectors,
    Window,
)
from byheart.embedding import measure_unrelated, stored_vectors, to_unit_length, window_texts
from byheart.errors import (
    ByheartError,
    Do,
    EmbedderUnavailable,
    EmbeddingError,
    Hint,
    InvalidInput,
    StoreError,
)
from byheart.model import ECHO, HEADING_SEPARATOR, UNEMBEDDED, Chunk
from byheart.startup.dataclass_types import dataclass

Reopen = Callable[[EmbedderSpec], Embedder]

_HASH_BYTES = 16
# Every model can embed this text.
_PLAIN = "a text"


@dataclass(frozen=True, slots=True)
class Passage:
    """Hold a chunk with the context that the embedder sees: its title and the text before it."""

    chunk: Chunk
    before: str
    title: str | None


def passages(chunks: Sequence[Chunk], title: str | None) -> list[Passage]:
    """Pair each chunk that needs vectors with the chunk before it, if its headings are the same."""
    befores: list[Chunk | None] = [None, *chunks]
    return [
        Passage(chunk, previous_text(chunk, before), title)
        for chunk, before in zip(chunks, befores, strict=False)
        if chunk.chunk_type not in UNEMBEDDED
    ]


def by_chunk(
    chunks: Sequence[Chunk], windows: Iterator[tuple[Window, ...]]
) -> tuple[tuple[Window, ...], ...]:
    """Assign the next windows to each chunk; chunks that are not embedded get none."""
    return tuple(() if chunk.chunk_type in UNEMBEDDED else next(windows) for chunk in chunks)


def previous_text(chunk: Chunk, before: Chunk | None) -> str:
    """Return the text before a chunk, if it belongs to the same section."""
    if before is None or before.headings != chunk.headings or before.chunk_type == ECHO:
        return ""
    return before.content


class Made(NamedTuple):
    """Hold the windows of passages, the model of their vectors, and why vectors are missing.

    If both `model` and `reason` are set, the embedder refused some texts, and their windows have
    no vectors.
    """

    windows: list[tuple[Window, ...]]
    model: Model | None
    reason: str | None


class Asked(NamedTuple):
    """Hold a question's vector, the reader to search with it, and notes for the answer.

    `unrelated` is the cosine that the model gives to texts with nothing in common. `models` are
    the store's models, if they had to be read.
    """

    reader: Reader
    vector: Vectors | None
    degraded: str | None
    remark: str | None
    unrelated: float
    models: Models | None = None


class Counter(NamedTuple):
    """Hold a token counter, its name, and whether it counts word by word."""

    tokens: TokenCounter
    name: str
    by_word: bool


class _Chosen(NamedTuple):
    """Hold the embedder to use, the store's model, and a remark if the settings differ."""

    embedder: Embedder
    stored: Model | None
    remark: str | None

    def foreign(self) -> str | None:
        """Return an explanation if the embedder does not belong to the store's model."""
        mine = model_of(self.embedder)
        if self.stored is None or self.stored == mine:
            return None
        return Hint(
            f"the store's vectors are of model {self.stored.name}, but the embedder is {mine.name} "
            "(switch the store to it with: ",
            Do("admin.reembed"),
            ")",
        )


class Layout(NamedTuple):
    """Hold the texts of the windows of passages, as one embedder takes them, and their hashes."""

    embedder: Embedder
    texts: list[list[str]]
    hashes: dict[str, bytes]

    @property
    def model(self) -> Model:
        """Return the model of the embedder."""
        return model_of(self.embedder)


class Known(NamedTuple):
    """Hold the windows of passages, and the vectors that the store has of them."""

    layout: Layout
    vectors: dict[bytes, Vectors]


class Maker:
    """Make vectors with one embedder, one per text, and count made and reused vectors."""

    def __init__(self, storage: Storage, embedder: Embedder, overlap_tokens: int) -> None:
        self._storage = storage
        self._embedder = embedder
        self._overlap_tokens = overlap_tokens
        self.model = model_of(embedder)
        self.made = self.reused = 0
        self.refusal: str | None = None

    def lay_out(self, wanted: Sequence[Passage]) -> Layout:
        """Cut passages into the texts that are embedded."""
        texts = [self._texts(each) for each in wanted]
        return Layout(self._embedder, texts, {text: _hash(text) for part in texts for text in part})

    def look_up(self, wanted: Sequence[Passage], space: str | None) -> Known:
        """Look for the vectors of passages that were embedded before.

        With `space`, a store that keeps spaces apart looks only near that space.
        """
        layout = self.lay_out(wanted)
        with self._storage.reading(space) as reader:
            vectors = reader.models.vectors_of(self.model, list(layout.hashes.values()))
        return Known(layout, vectors)

    def windows(self, found: Known, *, only_known: bool = False) -> list[tuple[Window, ...]]:
        """Embed passages that were looked up; with `only_known`, embed nothing new.

        The windows of texts that the embedder refuses have no vectors; `refusal` says why.
        """
        (_, texts, hashes), known = found.layout, dict(found.vectors)
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
        """Embed texts; if some are refused, halve the list until each refused text is isolated."""
        try:
            return dict(zip(texts, self._embed(texts), strict=True))
        except EmbedderUnavailable:
            raise
        except EmbeddingError as error:
            if not is_sound:
                self.check()
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

    def check(self) -> None:
        """Raise if the embedder itself fails, whatever the text is."""
        self._embed([_PLAIN])

    def _embed(self, texts: Sequence[str]) -> Vectors:
        with _own_errors():
            made = self._embedder.embed(texts)
        return _checked(made, (len(texts), self.model.dimensions), self.model.name)

    def _texts(self, passage: Passage) -> list[str]:
        outer = (passage.title, *(heading.title for heading in passage.chunk.headings))
        return window_texts(
            passage.chunk.content,
            before=passage.before,
            # The title of a document is often also its first heading.
            header=HEADING_SEPARATOR.join(dict.fromkeys(each for each in outer if each)),
            tokens=self._embedder,
            window_tokens=self._embedder.window_tokens,
            overlap_tokens=self._overlap_tokens,
        )


class Vectorizer:
    """Make vectors of the store's model, with the configured embedder or a reopened one.

    The settings name the configured model; the store records the model of its vectors. While the
    two differ, until `reembed` switches the store, `reopen` opens an embedder of the store's model.
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
        # The store's model as it was lately; each question checks it again.
        self._held: Model | None = None
        self.on_embedded: Callable[[int, int], None] = lambda _made, _reused: None

    def unavailable(self) -> str | None:
        """Return why no vectors can be made now, or None, without opening or fetching a model."""
        try:
            chosen = self._choose()
            return _away(chosen.embedder) or chosen.foreign()
        except EmbeddingError as error:
            return str(error)

    def remark(self) -> str | None:
        """Return a remark if the settings name another model than the store's."""
        try:
            return self._choose().remark
        except EmbeddingError:
            return None

    def wanted_name(self) -> str | None:
        """Return the name of the configured model, as far as it is known without fetching it."""
        if _away(self._embedder) is None:
            with suppress(EmbeddingError):
                return self._embedder.name
        spec = _spec_of(self._embedder)
        return None if spec is None or spec.provider == "none" else f"{spec.provider}/{spec.model}"

    def tokens(self, models: Models | None = None) -> TokenCounter:
        """Return the token counter that measures chunks: that of the store's model.

        `models` are the store's models, if the caller has just read them.
        """
        try:
            return self._choose(models).embedder
        except EmbeddingError:
            return self._embedder

    def likely_tokens(self) -> TokenCounter:
        """Return the token counter of the model that the store used lately, as far as known."""
        try:
            chosen = self._choose(held=self._held)
        except EmbeddingError:
            return self._embedder
        self._held = chosen.stored
        return chosen.embedder

    def lay_out(self, wanted: Sequence[Passage]) -> Layout | None:
        """Cut passages for the model that the store used lately; return None if it is unknown."""
        held = self._held
        with suppress(EmbeddingError):
            chosen = None if held is None else self._choose(held=held)
            if chosen is not None and chosen.foreign() is None:
                return Maker(self._storage, chosen.embedder, self._overlap_tokens).lay_out(wanted)
        return None

    def unload(self, idle_seconds: float) -> None:
        """Release the memory of idle models until the next text."""
        for embedder in (self._embedder, *self._reopened.values()):
            if isinstance(embedder, Unloadable):
                embedder.unload(idle_seconds)

    def load(self) -> None:
        """Load the store's model and embed one text; raise if that fails."""
        chosen = self._choose()
        reason = chosen.foreign()
        if reason is not None:
            raise EmbedderUnavailable(reason)
        Maker(self._storage, chosen.embedder, self._overlap_tokens).check()

    def forget_failures(self) -> None:
        """Ask the providers again at the next text, because something was repaired."""
        for embedder in (self._embedder, *self._reopened.values()):
            if isinstance(embedder, RemembersFailure):
                embedder.forget_failure()

    def counter(self, models: Models) -> Counter:
        """Return the token counter of chunks with its name, which is a model or an estimate."""
        try:
            tokens = self._choose(models).embedder
        except EmbeddingError:
            tokens = self._embedder
        if isinstance(tokens, NamesCounter):
            return Counter(tokens, tokens.token_counter, by_word=True)
        return Counter(tokens, tokens.name, by_word=False)

    @contextmanager
    def asking(self, question: str | None, space: str, *, remember: bool = True) -> Iterator[Asked]:
        """Open a space for a search, with the question's vector of the store's current model."""
        with ExitStack() as stack:
            assumed, models = self._held, None
            while True:
                vector, model, degraded, remark = self._embed_question(question, remember, assumed)
                if question and vector is None and assumed is not None:
                    assumed = None  # the store may have switched to another model
                    continue
                reader = stack.enter_context(self._storage.searching(space))
                if vector is None:
                    break
                models = reader.models.read()
                held = models.in_use()
                self._held = assumed = held if held == model else None
                if held in (None, model):
                    break
                stack.close()  # the model was switched meanwhile, and vectors of two models differ
            yield Asked(reader, vector, degraded, remark, self._unrelated.get(model, 0.0), models)

    @contextmanager
    def asking_with(self, vector: Vectors, space: str) -> Iterator[Asked]:
        """Open a space for a search with a vector that the caller made with the store's model."""
        with self._storage.searching(space) as reader:
            model = reader.models.read().in_use()
            if model is None:
                yield Asked(reader, None, "the store has no vectors to compare with", None, 0.0)
                return
            if len(vector) != model.dimensions:
                raise InvalidInput(
                    f"vector has {len(vector):,} numbers, and the store's model {model.name} gives "
                    f"{model.dimensions:,}",
                    "make the vector with that model, or leave vector out",
                )
            if model not in self._unrelated:
                with suppress(EmbeddingError):
                    chosen = self._choose(held=model)
                    if chosen.foreign() is None:
                        self._measure_unrelated(chosen.embedder, model)
            yield Asked(reader, vector, None, None, self._unrelated.get(model, 0.0))

    def embed_question(self, text: str) -> Vectors | None:
        """Embed a question by the store's model; return `None` if that is impossible now."""
        return self._embed_question(text, True, self._held)[0]

    def _embed_question(
        self, text: str | None, remember: bool, held: Model | None
    ) -> tuple[Vectors | None, Model | None, str | None, str | None]:
        if not text:
            return None, None, None, None
        try:
            chosen = self._choose(held=held)
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
        """Measure the cosine of unrelated texts once; after a failure, the next question tries."""
        if model not in self._unrelated:
            # A caller's own embedder may raise anything; the question is answered all the same.
            with suppress(Exception):
                self._unrelated[model] = measure_unrelated(embedder)

    def windows(
        self,
        wanted: Sequence[Passage],
        models: Models | None = None,
        space: str | None = None,
        known: Known | None = None,
    ) -> Made:
        """Embed passages, and return the reason if vectors are missing.

        `models` are the store's models, if the caller has just read them. `space` is the space of
        all passages, if they have one. `known` has these passages as `lay_out` returned them, with
        the vectors that the caller found. The transaction that writes the vectors checks whether
        their model is still in use.
        """
        try:
            models = models or stored_vectors.read(self._storage)
            chosen = self._choose(models)
            reason = chosen.foreign()
            if reason is None:
                maker = Maker(self._storage, chosen.embedder, self._overlap_tokens)
                if known is None or known.layout.embedder is not chosen.embedder:
                    known = maker.look_up(wanted, space)
                made = maker.windows(known)
                self.on_embedded(maker.made, maker.reused)
                self._note(chosen.embedder, maker.model, models)
                self._held = chosen.stored
                return Made(made, maker.model, maker.refusal)
        except EmbeddingError as error:
            reason = str(error)
        return Made([() for _ in wanted], None, reason)

    def known_windows(self, wanted: Sequence[Passage], space: str) -> Made:
        """Return the vectors of passages that were embedded before; the others are made later."""
        try:
            chosen = self._choose()
            if chosen.foreign() is None:
                maker = Maker(self._storage, chosen.embedder, self._overlap_tokens)
                known = maker.windows(maker.look_up(wanted, space), only_known=True)
                return Made(known, maker.model, None)
        except EmbeddingError:  # reported when the missing vectors are made
            pass
        return Made([() for _ in wanted], None, None)

    def wanted_maker(self) -> Maker:
        """Open a maker of vectors for the configured model; fetch the model if needed."""
        maker = Maker(self._storage, self._embedder, self._overlap_tokens)
        spec = _spec_of(self._embedder)
        if spec is not None:
            stored_vectors.note(self._storage, maker.model, spec)
        return maker

    def _choose(self, models: Models | None = None, held: Model | None = None) -> _Chosen:
        """Choose an embedder of the store's model, with a remark if the settings name another.

        A model that is not on this machine is not fetched only to learn its name. `models` are the
        store's models if the caller has just read them; `held` is the store's model if the caller
        already knows it and checks the store afterwards.
        """
        if models is None and held is None:
            models = stored_vectors.read(self._storage)
        stored, away = models.in_use() if models else held, _away(self._embedder)
        if stored is None or (away is None and model_of(self._embedder) == stored):
            return _Chosen(self._embedder, stored, None)
        models = models or stored_vectors.read(self._storage)
        mine, recorded = _spec_of(self._embedder), models.spec_of(stored)
        switched_off = mine is not None and mine.provider == "none"
        if self._reopen is None or recorded is None or recorded == mine or switched_off:
            return _Chosen(self._embedder, stored, None)
        earlier, reason = self._earlier(stored, recorded, self._reopen)
        if earlier is None and away is not None:
            return _Chosen(self._embedder, stored, None)
        if earlier is None:
            raise EmbedderUnavailable(
                Hint(
                    f"{self._difference(stored)}, and an embedder of the former cannot be opened: ",
                    reason or "",
                ),
                Hint("switch to the latter with: ", Do("admin.reembed")),
            )
        remark = Hint(f"{self._difference(stored)}: switch with: ", Do("admin.reembed"))
        return _Chosen(earlier, stored, remark)

    def _earlier(
        self, stored: Model, spec: EmbedderSpec, reopen: Reopen
    ) -> tuple[Embedder | None, str | None]:
        """Reopen an embedder of the store's model, or return the reason why that is impossible."""
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

    def _note(self, embedder: Embedder, model: Model, models: Models) -> None:
        """Record in the store how to open an embedder of its model."""
        spec = _spec_of(embedder)
        if spec is not None and model not in self._noted:
            with suppress(StoreError):  # the record is only a convenience, so a save must not fail
                if models.spec_of(model) != spec:
                    stored_vectors.note(self._storage, model, spec)
                self._noted.add(model)


def _embed_query(embedder: Embedder, text: str, remember: bool) -> Vectors:
    with _own_errors():
        if not remember and isinstance(embedder, RemembersQueries):
            return embedder.embed_once(text)
        return embedder.embed_query(text)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Translate any exception of a custom embedder into an EmbeddingError."""
    try:
        yield
    except ByheartError:
        raise
    except Exception as error:  # custom code may raise anything
        raise EmbeddingError(f"the embedder failed: {error}") from error


def _checked(vectors: Vectors, shape: tuple[int, ...], name: str) -> Vectors:
    """Return unit vectors, or raise if vectors would break later searches or their ranking."""
    if vectors.shape != shape:
        raise EmbeddingError(
            f"the embedder {name} gave vectors of shape {vectors.shape} instead of {shape}",
            "correct the embedder's dimensions, or use another model: setting embedding_model",
        )
    return to_unit_length(vectors, name)


def model_of(embedder: Embedder) -> Model:
    """Return the model of an embedder."""
    return Model(embedder.name, embedder.dimensions)


def _spec_of(embedder: Embedder) -> EmbedderSpec | None:
    # To ask whether it is `Reopenable` takes far longer, and every save needs it.
    spec: EmbedderSpec | None = getattr(embedder, "spec", None)
    return spec


def _away(embedder: Embedder) -> str | None:
    # To ask whether it is `MayBeAway` takes far longer, and every save needs it twice.
    unavailable: Callable[[], str | None] | None = getattr(embedder, "unavailable", None)
    return None if unavailable is None else unavailable()


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_HASH_BYTES]
