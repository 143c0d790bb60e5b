"""A question's vector is made while what needs none is looked up, where there is much of that."""

import threading
from pathlib import Path

from byheart.contracts import Reader, Vectors
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbedderUnavailable
from byheart.storage.sqlite import SqliteStorage
from byheart.vectorizing import Vectorizer

ATTEMPTS = 20


class Awaiting(HashEmbedder):
    """Embed a question only when something else has happened meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = threading.Event()
        self.saw_it_happen: list[bool] = []
        self.patience = 0.0

    def embed_query(self, text: str) -> Vectors:
        self.saw_it_happen.append(self.happened.wait(self.patience))
        return super().embed_query(text)


def test_the_rest_is_looked_up_while_a_vector_is_made(path: Path) -> None:
    embedder = Awaiting()
    vectorizer = Vectorizer(SqliteStorage(path), embedder, 0)

    def look_up(_reader: Reader) -> str:
        embedder.happened.set()
        return "looked up"

    for number in range(ATTEMPTS):
        embedder.patience = 0
        with vectorizer.asking_beside(f"quick {number}", lambda _reader: None):
            pass  # known to be quick from here on, unless the machine is very busy
        embedder.patience = 1
        embedder.happened.clear()
        with vectorizer.asking_beside(f"slow {number}", look_up) as asked:
            assert asked.meanwhile == "looked up"
            assert asked.vector is not None
        if embedder.saw_it_happen[-1]:
            break
    assert embedder.saw_it_happen[-1]


def test_what_may_take_long_is_embedded_before_a_view_is_open(path: Path) -> None:
    embedder = Awaiting()
    vectorizer = Vectorizer(SqliteStorage(path), embedder, 0)
    made: list[int] = []

    def look_up(_reader: Reader) -> None:
        made.append(len(embedder.saw_it_happen))

    with vectorizer.asking_beside("nobody knows how long a first question takes", look_up):
        assert made == [1]
    embedder.patience = 0.1
    with vectorizer.asking_beside("this one is slow", look_up):
        pass
    with vectorizer.asking_beside("so this one comes first again", look_up):
        assert made[-1] == 3


def test_what_was_let_go_is_loaded_again_before_a_view_is_open(path: Path) -> None:
    embedder = Awaiting()
    vectorizer = Vectorizer(SqliteStorage(path), embedder, 0)
    made: list[int] = []

    def look_up(_reader: Reader) -> None:
        made.append(len(embedder.saw_it_happen))

    with vectorizer.asking_beside("quick", look_up):
        pass
    vectorizer.unload(0)
    embedder.patience = 0.1
    with vectorizer.asking_beside("a model is loaded for this one", look_up):
        assert made == [1, 2]


def test_after_a_failure_nobody_holds_a_view_for_what_may_take_long(path: Path) -> None:
    embedder = Awaiting()
    vectorizer = Vectorizer(SqliteStorage(path), embedder, 0)
    made: list[int] = []

    def look_up(_reader: Reader) -> None:
        made.append(len(embedder.saw_it_happen))

    def refuse(_seconds: float) -> bool:
        raise EmbedderUnavailable("nobody answers", "try again")

    embedder.happened.wait = refuse  # type: ignore[assignment,method-assign]
    with vectorizer.asking_beside("refused at once", look_up) as asked:
        assert asked.degraded is not None
    embedder.happened, embedder.patience = threading.Event(), 0.1
    with vectorizer.asking_beside("answered slowly", look_up) as asked:
        assert asked.vector is not None
    assert made == [0, 1]


def test_an_embedder_that_fails_beside_is_told_like_any_other(path: Path) -> None:
    class Failing(HashEmbedder):
        def embed_query(self, text: str) -> Vectors:
            if text == "bad":
                raise ValueError("no such thing")
            return super().embed_query(text)

    vectorizer = Vectorizer(SqliteStorage(path), Failing(), 0)
    for question in ("good", "bad"):
        with vectorizer.asking_beside(question, lambda _reader: None) as asked:
            degraded = asked.degraded
    assert asked.vector is None
    assert degraded == "the embedder failed: no such thing"
