"""Workspaces: how soon the files of a folder are found, and what it costs to keep them fresh.

    python benchmarks/workspace.py [--tree FOLDER] [--peer PYTHON] [--out FILE]

FOLDER is a large real tree; without it, the code and documentation of the packages installed beside
this Python are copied until there are 5,200 files. Other sizes are made of paragraphs of that tree,
one to a file. Every step is a process of its own, so that its processor time and its peak memory
are its own. PYTHON is one that has basic-memory (requirements-peers.txt); without it the peer,
which is given the same tree, is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import string
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byheart import MemoryStore
    from byheart.model import Indexed

Row = dict[str, Any]

TREE_FILES = 5_200
LARGEST = 12_000  # bytes of a file: the vectors of all chunks are to be ready in minutes
WARM_SIZES = (1_000, 10_000, 50_000)
WATCHED = 10_000  # the size that is changed and watched, with all its vectors
FILES_PER_FOLDER = 100
SAVES = 50
BUSY_SAVES = 20
IDLE_SECONDS = 20
PATIENCE_SECONDS = 600
TEXT = {
    *("c", "cfg", "css", "go", "h", "html", "ini", "ipynb", "js", "json", "md", "py", "pyi"),
    *("rst", "sh", "toml", "ts", "txt", "yaml", "yml"),
}
PARAGRAPH = re.compile(r"\n\s*\n")
SUBJECTS = ("heron", "tram", "glacier", "violin", "bakery", "satellite", "orchard", "ferry")
VERBS = ("waits beside", "was painted like", "grew older than", "sings about", "hides behind")


# --- Trees ----------------------------------------------------------------------------------------


def copy_packages(target: Path, wanted: int) -> None:
    """Copy the texts of installed packages, then of the standard library, up to a number."""
    count = 0
    for source in (Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))):
        for path in sorted(source.rglob("*")):
            if (
                path.suffix[1:].lower() not in TEXT
                or "site-packages" in path.parts[len(source.parts) :]
            ):
                continue
            if not path.is_file() or not 0 < path.stat().st_size < LARGEST:
                continue
            place = (
                target / source.name.replace("site-packages", "packages") / path.relative_to(source)
            )
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
            count += 1
            if count == wanted:
                return


def gather_paragraphs(tree: Path) -> list[str]:
    """Take short passages out of a tree's files, each once, in an order of chance."""
    found: set[str] = set()
    for path in sorted(tree.rglob("*")):
        if path.suffix in (".md", ".rst", ".txt", ".py") and path.is_file():
            text = path.read_text("utf-8", "ignore")
            found.update(part for part in PARAGRAPH.split(text) if 80 <= len(part) <= 600)
    paragraphs = sorted(found)
    random.Random(7).shuffle(paragraphs)
    return paragraphs


def make_files(folder: Path, count: int, paragraphs: Sequence[str]) -> None:
    """Write files of one passage each, a hundred to a folder, an hour old."""
    an_hour_ago = time.time() - 3600
    for number in range(count):
        path = place_of(folder, number)
        if number % FILES_PER_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"Note {number}\n\n{paragraphs[number % len(paragraphs)]}\n")
        os.utime(path, (an_hour_ago, an_hour_ago))


def place_of(folder: Path, number: int) -> Path:
    """Say where a made file is."""
    return folder / f"part{number // FILES_PER_FOLDER:03}" / f"note{number:05}.md"


# --- Steps, each in a process of its own ----------------------------------------------------------


def index_words(store: MemoryStore, folder: Path) -> Row:
    """Index a folder as far as keyword search."""
    return describe(store.index(folder, embed=False))


def index_whole(store: MemoryStore, folder: Path) -> Row:
    """Index a folder with all its vectors."""
    return describe(store.index(folder))


def embed_rest(store: MemoryStore, _: Path) -> Row:
    """Make the vectors that are missing."""
    return {"chunks": store.admin.embed_pending()}


def describe(report: Indexed) -> Row:
    """Keep of a report what the table shows."""
    return {
        "files": report.files_indexed,
        "unchanged": report.files_skipped,
        "chunks": report.chunks,
        "errors": len(report.errors),
        "pending": report.pending_vectors,
    }


STEPS: dict[str, Callable[[MemoryStore, Path], Row]] = {
    each.__name__: each for each in (index_words, index_whole, embed_rest)
}


def perform(name: str, database: Path, folder: Path) -> None:
    """Perform one step and print what it took."""
    import byheart

    started, before = time.perf_counter(), processor_seconds()
    store = byheart.open(database)
    row = STEPS[name](store, folder)
    took, worked = time.perf_counter() - started, processor_seconds() - before
    store.close()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    helped = processor_seconds(resource.RUSAGE_CHILDREN)
    took_all = {"seconds": took, "processor": worked + helped, "helpers": helped}
    print(json.dumps({**row, **took_all, "peak_mb": peak_mb}))


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """Give the processor time so far of this process, or of its helpers that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run_step(name: str, database: Path, folder: Path) -> Row:
    """Run one step in a new process."""
    command = [sys.executable, __file__, "--step", name, str(database), str(folder)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row: Row = json.loads(out.splitlines()[-1])
    note(f"{name} {folder.name}: {row}")
    return row


# --- Watching -------------------------------------------------------------------------------------


class Watching:
    """A watcher in a process of its own."""

    def __init__(self, database: Path, folder: Path) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "byheart",
                "--db",
                str(database),
                "--json",
                "watch",
                str(folder),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Shells let what they start in the background ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def processor(self) -> float:
        """Give the processor time of the watcher so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """Give the most memory it ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@contextmanager
def watching(database: Path, folder: Path) -> Iterator[Watching]:
    """Start a watcher, wait until it has looked at everything, and stop it as Ctrl-C does."""
    watcher = Watching(database, folder)
    try:
        yield watcher
    finally:
        watcher.process.send_signal(signal.SIGINT)
        watcher.process.wait(60)


def save_and_find(store: MemoryStore, folder: Path, count: int, mode: str) -> list[float]:
    """Save files one by one, and look for each in this process until it is found."""
    waits = []
    for number in range(count):
        path, text, question = make_note(folder, number, mode)
        started = time.perf_counter()
        path.write_text(text)
        while not finds(store, question, path, mode):
            if time.perf_counter() - started > PATIENCE_SECONDS:
                raise TimeoutError(f"{path} was not found by {mode}")
            time.sleep(0.005)
        waits.append(time.perf_counter() - started)
        time.sleep(0.2)
    return waits


def make_note(folder: Path, number: int, mode: str) -> tuple[Path, str, str]:
    """Make up a file, its text, and what to ask to find it."""
    chance = random.Random(f"{mode} {number} {time.time_ns()}")
    word = "".join(chance.choices(string.ascii_lowercase, k=16))
    sentence = f"The {chance.choice(SUBJECTS)} {chance.choice(VERBS)} the {chance.choice(SUBJECTS)}"
    path = folder / f"saved-{word}.md"
    if mode == "fts":
        return path, f"{sentence}. {word}\n", word
    return (
        path,
        f"{sentence}, number {number} of {word}.\n",
        f"{sentence}, number {number} of {word}.",
    )


def finds(store: MemoryStore, question: str, path: Path, mode: str) -> bool:
    """Say whether a file is the first hit."""
    answer = store.search(question, mode=mode, limit=1)
    return bool(answer.results) and answer.results[0].path == path.as_posix()


def measure_saves(database: Path, folder: Path) -> Row:
    """Measure saves into a watched folder whose vectors are all made, then its idling."""
    import byheart

    with watching(database, folder) as watcher, byheart.open(database) as store:
        save_and_find(store, folder, 3, "fts")  # it has looked at everything by then
        words = save_and_find(store, folder, SAVES, "fts")
        meaning = save_and_find(store, folder, SAVES, "vector")
        await_vectors(store)
        before = watcher.processor()
        time.sleep(IDLE_SECONDS)
        idle = watcher.processor() - before
        return {
            "found by keyword": summarize(words),
            "found by meaning": summarize(meaning),
            "idle processor": idle,
            "peak_mb": watcher.peak_mb(),
        }


def measure_busy_saves(database: Path, folder: Path) -> Row:
    """Measure saves into a folder whose vectors the watcher is still making."""
    import byheart

    with watching(database, folder), byheart.open(database) as store:
        save_and_find(store, folder, 3, "fts")
        waits = save_and_find(store, folder, BUSY_SAVES, "fts")
        assert store.status().index.pending_vectors, "the vectors were ready too soon"
        return summarize(waits)


def measure_burst(database: Path, folder: Path, count: int) -> Row:
    """Change many files of a watched folder at once, as a checkout does."""
    import byheart

    with watching(database, folder) as watcher, byheart.open(database) as store:
        save_and_find(store, folder, 3, "fts")
        worked = watcher.processor()
        started = time.perf_counter()
        for number in range(count):
            path = place_of(folder, number)
            path.write_text(f"{path.read_text()}\nChanged by burst{number:05}.\n")
        written = time.perf_counter() - started
        awaited = [*range(0, count, FILES_PER_FOLDER), count - 1]
        while awaited := [each for each in awaited if not finds_burst(store, folder, each)]:
            if time.perf_counter() - started > PATIENCE_SECONDS:
                raise TimeoutError(f"{len(awaited)} of the changed files were not found")
            time.sleep(0.05)
        found = time.perf_counter() - started
        return {
            "written": written,
            "found": found,
            "processor": watcher.processor() - worked,
            "peak_mb": watcher.peak_mb(),
        }


def finds_burst(store: MemoryStore, folder: Path, number: int) -> bool:
    """Say whether a file is found as the burst left it."""
    return finds(store, f"burst{number:05}", place_of(folder, number), "fts")


def await_vectors(store: MemoryStore) -> None:
    """Wait until no chunk waits for its vector."""
    until = time.perf_counter() + PATIENCE_SECONDS
    while store.status().index.pending_vectors:
        if time.perf_counter() > until:
            raise TimeoutError("vectors are still missing")
        time.sleep(0.2)


def summarize(seconds: Sequence[float]) -> Row:
    """Sum times up."""
    ordered = sorted(seconds)
    return {
        "p50": ordered[len(ordered) // 2],
        "p95": ordered[int(len(ordered) * 0.95)],
        "worst": ordered[-1],
    }


# --- The peer -------------------------------------------------------------------------------------


def measure_peer(python: Path, tree: Path, folder: Path) -> Row:
    """Give the same tree to basic-memory and to Byheart: new, and unchanged.

    It reads the text of Markdown alone, so all names get that ending; and it writes front matter
    into what it reads, so it has a copy of its own. Its vectors are switched off: it would fetch a
    model for them.
    """
    files = sorted(path for path in tree.rglob("*") if path.suffix[1:].lower() in TEXT)
    ours, theirs = folder / "ours", folder / "theirs"
    for path in files:
        for place in (ours, theirs):
            target = place / f"{path.relative_to(tree)}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    command = [str(python.parent / "basic-memory")]
    variables = {
        "HOME": str(folder / "home"),
        "BASIC_MEMORY_CONFIG_DIR": str(folder / "home" / "config"),
        "BASIC_MEMORY_HOME": str(folder / "home" / "notes"),
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        "BASIC_MEMORY_AUTO_UPDATE": "false",
    }
    (folder / "home").mkdir()
    run_child([*command, "project", "add", "tree", str(theirs)], variables)
    row: Row = {"files": len(files)}
    database = folder / "peer.db"
    for name in ("cold", "warm"):
        row[f"{name}, byheart"] = run_child(
            [
                sys.executable,
                "-m",
                "byheart",
                "--db",
                str(database),
                "index",
                "--no-embed",
                str(ours),
            ]
        )
        row[f"{name}, peer"] = run_child([*command, "reindex", "--search", "-p", "tree"], variables)
        note(f"{name}: {row}")
    return row


def run_child(command: Sequence[str], variables: dict[str, str] | None = None) -> Row:
    """Run a command to its end, and give what it took."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a file could not be read
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - started,
        "processor": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


# --- All of it ------------------------------------------------------------------------------------


def measure_tree(tree: Path, folder: Path) -> Row:
    """Index a real tree: by keyword, again, and then the vectors."""
    database = folder / "tree.db"
    return {
        "cold": run_step("index_words", database, tree),
        "store_mb": database.stat().st_size / 1e6,
        "warm": run_step("index_words", database, tree),
        "vectors": run_step("embed_rest", database, tree),
    }


def measure_sizes(folder: Path, paragraphs: Sequence[str], sizes: Sequence[int]) -> Row:
    """Index made folders of several sizes, and again; the watched one with vectors."""
    rows: Row = {}
    for size in sizes:
        place, database = folder / f"made{size}", folder / f"made{size}.db"
        make_files(place, size, paragraphs)
        step = "index_whole" if size == WATCHED else "index_words"
        cold = run_step(step, database, place)
        warm = min((run_step("index_words", database, place) for _ in range(3)), key=took)
        assert warm["files"] == 0, warm
        rows[str(size)] = {"cold": cold, "warm": warm}
    return rows


def took(row: Row) -> float:
    """Order rows by their time."""
    return float(row["seconds"])


def measure_changed(folder: Path, size: int) -> Row:
    """Change one file in a hundred, and index again: by keyword, then with vectors."""
    place, database = folder / f"made{size}", folder / f"made{size}.db"
    for number in range(0, size, 100):
        path = place_of(place, number)
        path.write_text(path.read_text() + "\nOne sentence more.\n")
    words = run_step("index_words", database, place)
    assert words["files"] == size // 100, words
    return {"words": words, "whole": run_step("index_whole", database, place)}


def measure(
    tree: Path, folder: Path, sizes: Sequence[int], peer: Path | None
) -> Iterator[tuple[str, Row]]:
    """Measure everything, part by part."""
    yield "tree", measure_tree(tree, folder)
    if peer is not None:
        yield "peer", measure_peer(peer, tree, folder)
    yield "sizes", measure_sizes(folder, gather_paragraphs(tree), sizes)
    if WATCHED in sizes:
        place, database = folder / f"made{WATCHED}", folder / f"made{WATCHED}.db"
        yield "changed", measure_changed(folder, WATCHED)
        yield "saves", measure_saves(database, place)
        yield "burst", measure_burst(database, place, WATCHED)
        # Ten thousand changed files wait for their vectors now.
        yield "busy saves", measure_busy_saves(database, place)


def note(text: str) -> None:
    """Say how far it has come, and how busy the machine is."""
    print(f"[load {os.getloadavg()[0]:.1f}] {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, help="a large folder of texts")
    parser.add_argument("--sizes", default=",".join(map(str, WARM_SIZES)))
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help="one that has basic-memory")
    parser.add_argument("--out", type=Path, help="keep the figures here as they come")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, database, place = options.step
        perform(name, Path(database), Path(place))
        return
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    rows: Row = {"date": datetime.now(UTC).date().isoformat(), "machine": machine}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tree = options.tree or folder / "tree"
        if options.tree is None:
            copy_packages(tree, TREE_FILES)
        sizes = [int(each) for each in options.sizes.split(",")]
        for name, row in measure(tree, folder, sizes, options.peer):
            rows[name] = row
            note(f"{name}: {json.dumps(row)}")
            if options.out:
                options.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
