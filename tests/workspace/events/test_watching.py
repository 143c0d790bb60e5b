"""Watching, by the real watcher on real folders."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from byheart.workspace.events.changes import Source
from byheart.workspace.events.folder_watches import FolderWatches
from byheart.workspace.events.inbox import Inbox
from byheart.workspace.events.inotify import OVERFLOW, Event, Inotify
from byheart.workspace.events.mounts import find_silent_filesystem
from byheart.workspace.events.tree_watch import TreeWatch
from byheart.workspace.events.watching import Watch
from byheart.workspace.regular_file import SeenFile
from byheart.workspace.rules.ignoring import IgnoreRules
from byheart.workspace.walking import see, walk
from tests.waiting import PATIENCE_SECONDS

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

Open = Callable[..., Watch]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for folder in ("docs/deep/deeper", "notes", "node_modules/package"):
        (root / folder).mkdir(parents=True)
    (root / "docs/guide.md").write_text("one")
    (root / "docs/deep/page.md").write_text("one")
    return root


@pytest.fixture
def rules(root: Path) -> IgnoreRules:
    return IgnoreRules(root)


@pytest.fixture
def open_watch(root: Path, rules: IgnoreRules) -> Iterator[Open]:
    """Enter watches over the root and leave them at the end."""
    opened: list[Watch] = []

    def open_one(**options: object) -> Watch:
        opened.append(Watch(root, rules, **options).__enter__())
        return opened[-1]

    yield open_one
    for watch in opened:
        watch.__exit__(None, None, None)


@pytest.fixture
def opened() -> list[Source]:
    return []


@pytest.fixture(params=[pytest.param("folders", marks=linux_only), "tree", "polling"])
def watch(request: pytest.FixtureRequest, open_watch: Open) -> Watch:
    """A watch of each kind."""
    if request.param == "polling":
        return open_watch(polling=True, poll_seconds=0.02)
    return open_watch(listen=FolderWatches if request.param == "folders" else TreeWatch)


def gather(watch: Watch, *wanted: str) -> set[str]:
    """Wait until each path was handed on, by itself or with a folder above it."""
    told: set[str] = set()
    until = time.monotonic() + PATIENCE_SECONDS
    missing = list(wanted)
    while missing := [path for path in missing if not covers(told, path)]:
        assert time.monotonic() < until, f"{missing} not told, but {told}"
        told |= watch.wait(0.2)
    return told


def covers(told: set[str], path: str) -> bool:
    return "" in told or path in told or any(str(up) in told for up in PurePosixPath(path).parents)


def settle(watch: Watch) -> None:
    """Wait until nothing more is told."""
    until = time.monotonic() + PATIENCE_SECONDS
    while watch.wait(0.15):
        assert time.monotonic() < until


def registering(opened: list[Source]) -> Callable[[Path, IgnoreRules], FolderWatches]:
    """Open real sources and keep hold of them."""

    def listen(root: Path, rules: IgnoreRules) -> FolderWatches:
        source = FolderWatches(root, rules)
        opened.append(source)
        return source

    return listen


def test_a_created_file_is_told(watch: Watch, root: Path) -> None:
    (root / "docs/new.md").write_text("x")
    assert gather(watch, "docs/new.md") == {"docs/new.md"}


def test_a_modified_file_is_told(watch: Watch, root: Path) -> None:
    (root / "docs/guide.md").write_text("two, and longer")
    assert gather(watch, "docs/guide.md") == {"docs/guide.md"}


def test_a_deleted_file_is_told(watch: Watch, root: Path) -> None:
    (root / "docs/guide.md").unlink()
    assert gather(watch, "docs/guide.md") == {"docs/guide.md"}


def test_a_renamed_file_is_told_by_both_names(watch: Watch, root: Path) -> None:
    (root / "docs/guide.md").rename(root / "notes/manual.md")
    assert gather(watch, "docs/guide.md", "notes/manual.md") == {"docs/guide.md", "notes/manual.md"}


def test_a_file_replaced_through_a_temporary_one_is_told(watch: Watch, root: Path) -> None:
    temporary = root / "docs/.guide.md.swp"
    temporary.write_text("two, and longer")
    temporary.replace(root / "docs/guide.md")
    assert gather(watch, "docs/guide.md") == {"docs/guide.md"}


def test_what_is_in_a_new_folder_is_told(watch: Watch, root: Path) -> None:
    (root / "new/below").mkdir(parents=True)
    (root / "new/below/page.md").write_text("x")
    gather(watch, "new/below/page.md")
    settle(watch)
    (root / "new/below/later.md").write_text("x")
    assert gather(watch, "new/below/later.md") == {"new/below/later.md"}


def test_a_deleted_folder_is_told(watch: Watch, root: Path) -> None:
    shutil.rmtree(root / "docs")
    told = gather(watch, "docs/guide.md", "docs/deep/page.md")
    assert covers(told, "docs/guide.md")
    assert covers(told, "docs/deep/page.md")


def test_a_deleted_and_remade_folder_is_heard_again(watch: Watch, root: Path) -> None:
    shutil.rmtree(root / "docs")
    (root / "docs").mkdir()
    gather(watch, "docs/guide.md")
    settle(watch)
    (root / "docs/again.md").write_text("x")
    assert covers(gather(watch, "docs/again.md"), "docs/again.md")


def test_a_folder_moved_within_is_told_by_both_names(watch: Watch, root: Path) -> None:
    (root / "docs").rename(root / "notes/manuals")
    gather(watch, "docs/deep/page.md", "notes/manuals/deep/page.md")
    settle(watch)
    (root / "notes/manuals/deep/page.md").write_text("two, and longer")
    assert gather(watch, "notes/manuals/deep/page.md") == {"notes/manuals/deep/page.md"}


def test_a_folder_moved_out_is_told_and_heard_no_more(
    watch: Watch, root: Path, tmp_path: Path
) -> None:
    (root / "docs").rename(tmp_path / "elsewhere")
    gather(watch, "docs/guide.md", "docs/deep/page.md")
    settle(watch)
    (tmp_path / "elsewhere/deep/page.md").write_text("two, and longer")
    assert watch.wait(0.2) == set()


def test_a_folder_moved_in_is_told_and_heard(watch: Watch, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside/below").mkdir(parents=True)
    (tmp_path / "outside/below/page.md").write_text("x")
    (tmp_path / "outside").rename(root / "inside")
    gather(watch, "inside/below/page.md")
    settle(watch)
    (root / "inside/below/page.md").write_text("two, and longer")
    assert gather(watch, "inside/below/page.md") == {"inside/below/page.md"}


@linux_only
def test_a_folder_renamed_over_an_empty_one_is_heard(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    (root / "docs").replace(root / "notes")
    gather(watch, "docs/guide.md", "notes/guide.md")
    settle(watch)
    (root / "notes/guide.md").write_text("two, and longer")
    assert gather(watch, "notes/guide.md") == {"notes/guide.md"}


def test_ignored_files_are_not_told(watch: Watch, root: Path) -> None:
    (root / "node_modules/package/readme.md").write_text("x")
    (root / "docs/.hidden.md").write_text("x")
    (root / "docs/seen.md").write_text("x")
    assert gather(watch, "docs/seen.md") == {"docs/seen.md"}


def test_a_changed_rule_file_tells_its_folder(watch: Watch, root: Path) -> None:
    (root / "docs/.gitignore").write_text("deep/\n")
    gather(watch, "docs/deep/page.md")
    settle(watch)
    (root / "docs/deep/page.md").write_text("two, and longer")
    (root / "docs/guide.md").write_text("two, and longer")
    assert gather(watch, "docs/guide.md") == {"docs/guide.md"}
    (root / "docs/.gitignore").unlink()
    gather(watch, "docs/deep/page.md")
    settle(watch)
    (root / "docs/deep/page.md").write_text("three, and longer still")
    assert gather(watch, "docs/deep/page.md") == {"docs/deep/page.md"}


def test_a_burst_of_ten_thousand_changes_is_told_completely(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    names = [f"docs/{number}.md" for number in range(10_000)]
    for name in names:
        (root / name).touch()
    told = gather(watch, *names)
    assert all(covers(told, name) for name in names)


def test_who_looks_only_where_told_knows_everything(
    watch: Watch, root: Path, rules: IgnoreRules
) -> None:
    known = look(root, rules, "")
    disorder = Disorder(root, seed=5)
    for _ in range(10):
        for _ in range(12):
            disorder.add()
        catch_up(known, watch.wait(0.01), root, rules)
    until = time.monotonic() + PATIENCE_SECONDS
    while known != look(root, IgnoreRules(root), "") and time.monotonic() < until:
        catch_up(known, watch.wait(0.2), root, rules)
    assert known == look(root, IgnoreRules(root), "")


def look(root: Path, rules: IgnoreRules, below: str) -> dict[str, SeenFile]:
    return {seen.path: seen for seen in walk(root, rules, lambda _: None, below=below)}


def catch_up(known: dict[str, SeenFile], told: set[str], root: Path, rules: IgnoreRules) -> None:
    """Look at what was told, and only at that."""
    for path in told:
        for each in [each for each in known if covers({path}, each)]:
            del known[each]
        known |= look(root, rules, path)
        if path and (seen := see(root, rules, path)):
            known[path] = seen


class Disorder:
    """Do to a folder whatever can be done to one, at random."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._random = random.Random(seed)

    def add(self) -> None:
        act = self._random.choice(
            [self._write, self._write, self._write, self._make, self._move, self._remove]
            + [self._ignore] * (self._random.random() < 0.2)
        )
        # What was chosen may be gone, or be moved into itself: as in real life, that fails.
        with contextlib.suppress(OSError):
            act()

    def _any_folder(self) -> Path:
        return self._random.choice(
            [self._root, *(path for path in sorted(self._root.rglob("*")) if path.is_dir())]
        )

    def _any_name(self) -> Path:
        return self._any_folder() / self._random.choice(["a", "b", "c", "x.md", "y.md"])

    def _write(self) -> None:
        self._any_name().with_suffix(".md").write_text("x" * self._random.randrange(1000))

    def _make(self) -> None:
        (self._any_name().with_suffix("") / "within").mkdir(parents=True)

    def _move(self) -> None:
        self._any_name().rename(self._any_name())

    def _remove(self) -> None:
        found = self._any_name()
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()

    def _ignore(self) -> None:
        rule_file = self._any_folder() / ".gitignore"
        rule_file.write_text(self._random.choice(["a/\n", "y.md\n", ""]))


def test_changes_that_never_cease_are_handed_on_meanwhile(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    end = threading.Event()

    def write() -> None:
        number = 0
        while not end.wait(0.002):
            number += 1
            (root / f"notes/{number}.md").touch()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert "notes/1.md" in gather(watch, "notes/1.md")
        assert not end.is_set()
    finally:
        end.set()
        writer.join()


@pytest.mark.parametrize("polling", [False, True])
def test_a_root_deleted_and_made_again_is_watched_again(
    open_watch: Open, root: Path, polling: bool
) -> None:
    watch = open_watch(polling=polling, poll_seconds=0.02)
    shutil.rmtree(root)
    told: set[str] = set()
    while watch.trouble is None:
        told |= watch.wait(0.2)
    assert "" in told | watch.wait(0.1)
    assert "is not there" in watch.trouble
    root.mkdir()
    (root / "first.md").write_text("x")
    gather(watch, "first.md")
    assert watch.trouble is None
    settle(watch)
    (root / "second.md").write_text("x")
    assert gather(watch, "second.md") == {"second.md"}


def test_a_root_replaced_at_once_is_watched_again(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    shutil.rmtree(root)
    root.mkdir()
    until = time.monotonic() + PATIENCE_SECONDS
    while "" not in watch.wait(0.2):
        assert time.monotonic() < until
    settle(watch)
    (root / "first.md").write_text("x")
    assert gather(watch, "first.md") == {"first.md"}


def test_a_folder_above_the_root_may_be_moved_away_and_back(tmp_path: Path) -> None:
    root = tmp_path / "above/root"
    root.mkdir(parents=True)
    with Watch(root, IgnoreRules(root)) as watch:
        (tmp_path / "above").rename(tmp_path / "away")
        gather(watch, "anything")
        assert watch.trouble is not None
        (tmp_path / "away").rename(tmp_path / "above")
        gather(watch, "anything")
        assert watch.trouble is None
        (root / "first.md").write_text("x")
        assert gather(watch, "first.md") == {"first.md"}


def test_a_root_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "later"
    with Watch(root, IgnoreRules(root)) as watch:
        assert "is not there" in str(watch.trouble)
        root.mkdir()
        assert gather(watch, "anything") == {""}
        assert watch.trouble is None


@linux_only
def test_ignored_folders_are_never_registered(
    open_watch: Open, root: Path, opened: list[FolderWatches]
) -> None:
    watch = open_watch(listen=registering(opened))
    (root / "new/node_modules/package").mkdir(parents=True)
    gather(watch, "new")
    settle(watch)
    assert opened[0].folders == {"", "docs", "docs/deep", "docs/deep/deeper", "notes", "new"}


@linux_only
def test_registrations_follow_the_rules(
    open_watch: Open, root: Path, opened: list[FolderWatches]
) -> None:
    watch = open_watch(listen=registering(opened))
    (root / "docs/.byheartignore").write_text("deep/\n")
    gather(watch, "docs")
    settle(watch)
    assert opened[-1].folders == {"", "docs", "notes"}
    (root / "docs/.byheartignore").write_text("deep/deeper\n")
    gather(watch, "docs")
    settle(watch)
    assert opened[-1].folders == {"", "docs", "docs/deep", "notes"}


@linux_only
def test_folders_that_vanish_are_registered_no_more(
    open_watch: Open, root: Path, opened: list[FolderWatches]
) -> None:
    watch = open_watch(listen=registering(opened))
    (root / "docs").rename(root / "notes/docs")
    shutil.rmtree(root / "notes/docs/deep/deeper")
    gather(watch, "docs", "notes/docs")
    settle(watch)
    assert opened[0].folders == {"", "notes", "notes/docs", "notes/docs/deep"}


@linux_only
def test_links_to_folders_are_not_followed(
    open_watch: Open, root: Path, tmp_path: Path, opened: list[FolderWatches]
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    watch = open_watch(listen=registering(opened))
    (root / "second").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/page.md").write_text("x")
    (root / "docs/seen.md").write_text("x")
    assert not covers(gather(watch, "docs/seen.md"), "link/page.md")
    assert not {"link", "second"} & opened[0].folders


@linux_only
def test_a_name_that_is_not_utf8_deafens_nobody(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).mkdir()
    (root / "docs/seen.md").write_text("x")
    assert gather(watch, "docs/seen.md") == {"docs/seen.md"}


@linux_only
def test_an_error_of_the_tree_watcher_asks_for_a_look_at_everything(
    open_watch: Open, root: Path
) -> None:
    watch = open_watch(listen=TreeWatch)
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe.md")).touch()
    assert gather(watch, "anything") == {""}
    settle(watch)
    (root / "docs/seen.md").write_text("x")
    assert gather(watch, "docs/seen.md") == {"docs/seen.md"}


@linux_only
def test_an_overflowed_queue_asks_for_a_look_at_everything(open_watch: Open, root: Path) -> None:
    is_open = threading.Event()

    class Gate(Inbox[Event]):
        def put(self, items: Iterable[Event]) -> None:
            is_open.wait()
            super().put(items)

    def listen(root: Path, rules: IgnoreRules) -> FolderWatches:
        return FolderWatches(root, rules, Inotify(Gate(OVERFLOW)))

    watch = open_watch(listen=listen)
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    touched = [root / "docs/guide.md", root / "docs/deep/page.md"]
    # Nothing can be left in the inbox meanwhile, so that the kernel must keep it, and cannot. The
    # listener may have read a whole queue before it waits for the inbox, so one more is needed.
    for number in range(3 * room):
        os.utime(touched[number % 2])
    (root / "lost/below").mkdir(parents=True)
    is_open.set()
    assert "" in gather(watch, "lost")
    settle(watch)
    (root / "lost/below/page.md").write_text("x")
    assert gather(watch, "lost/below/page.md") == {"lost/below/page.md"}


def test_an_inbox_that_is_full_keeps_only_that_it_was() -> None:
    inbox = Inbox("overflow", max_items=3)
    inbox.put(["a", "b", "c", "a"])
    assert inbox.take(0) == {"a", "b", "c"}
    inbox.put(["a", "b", "c", "d"])
    assert inbox.take(0) == {"overflow"}


class Limited(Inotify):
    """Take so many folders and no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def add(self, folder: bytes) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(folder))
        self._room -= 1
        return super().add(folder)


@linux_only
def test_without_room_for_all_folders_it_polls_and_says_so(open_watch: Open, root: Path) -> None:
    watch = open_watch(
        listen=lambda root, rules: FolderWatches(root, rules, Limited(3)), poll_seconds=0.02
    )
    assert "fs.inotify.max_user_watches" in str(watch.trouble)
    assert str(root) in str(watch.trouble)
    (root / "docs/deep/deeper/new.md").write_text("x")
    assert gather(watch, "docs/deep/deeper/new.md") == {"docs/deep/deeper/new.md"}


@linux_only
def test_without_room_for_a_new_folder_it_polls_from_then_on(open_watch: Open, root: Path) -> None:
    watch = open_watch(
        listen=lambda root, rules: FolderWatches(root, rules, Limited(5)), poll_seconds=0.02
    )
    assert watch.trouble is None
    (root / "one/more").mkdir(parents=True)
    assert gather(watch, "anything") == {""}
    assert "max_user_watches" in str(watch.trouble)
    (root / "one/more/page.md").write_text("x")
    assert gather(watch, "one/more/page.md") == {"one/more/page.md"}


def test_a_system_without_a_watcher_to_spare_is_polled(open_watch: Open, root: Path) -> None:
    def listen(root: Path, rules: IgnoreRules) -> Source:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    watch = open_watch(listen=listen, poll_seconds=0.02)
    assert "fs.inotify.max_user_instances" in str(watch.trouble)
    (root / "docs/new.md").write_text("x")
    assert gather(watch, "docs/new.md") == {"docs/new.md"}


def test_polling_by_choice_is_no_trouble(open_watch: Open) -> None:
    assert open_watch(polling=True).trouble is None


def test_network_file_systems_are_known_by_their_mounts(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:9 / /srv/our\\040share rw shared:1 - nfs4 server:/ rw\n"
        "3 2 8:2 / /srv/our\\040share/local rw - ext4 /dev/sdb rw\n"
    )
    found = [
        find_silent_filesystem(Path(folder), mounts)
        for folder in ("/srv", "/srv/our share/docs", "/srv/our share/local", "/srv/our share2")
    ]
    assert found == [None, "nfs4", None, None]


def test_waiting_ends_with_nothing_after_its_time(open_watch: Open) -> None:
    assert open_watch().wait(0.05) == set()


def test_waiting_without_time_takes_what_there_is(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    (root / "docs/new.md").write_text("x")
    told: set[str] = set()
    until = time.monotonic() + PATIENCE_SECONDS
    while not told and time.monotonic() < until:
        told = watch.wait(0)
    assert told == {"docs/new.md"}


@pytest.mark.parametrize("polling", [False, True])
def test_stop_ends_waiting_from_another_thread(open_watch: Open, polling: bool) -> None:
    watch = open_watch(polling=polling)
    stop, told = threading.Event(), []
    waiter = threading.Thread(target=lambda: told.append(watch.wait(600, stop)))
    waiter.start()
    stop.set()
    waiter.join(PATIENCE_SECONDS)
    assert told == [set()]


def test_what_was_heard_before_stop_is_told_later(open_watch: Open, root: Path) -> None:
    watch = open_watch()
    (root / "docs/new.md").write_text("x")
    stop = threading.Event()
    stop.set()
    assert watch.wait(600, stop) == set()
    assert gather(watch, "docs/new.md") == {"docs/new.md"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_an_interrupt_ends_waiting(open_watch: Open) -> None:
    watch = open_watch()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            watch.wait(600)
    finally:
        timer.join()


def test_leaving_a_watch_ends_its_thread(root: Path) -> None:
    def count() -> int:
        return sum(thread.name == "byheart-watch" for thread in threading.enumerate())

    before = count()
    with Watch(root, IgnoreRules(root)):
        assert count() == before + 1
    assert count() == before
