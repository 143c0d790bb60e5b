"""Walking gives the files that are memory, and names what it could not look at."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import InvalidInput, NotFound, Unreadable
from byheart.workspace import IgnoreRules, SeenFile, Unseen, explain, read_file, see, walk

needs_permissions = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)


def walked(root: Path, *, below: str = "") -> tuple[list[str], list[Unseen]]:
    unseen: list[Unseen] = []
    files = walk(root, IgnoreRules(root), unseen.append, below=below)
    return [each.path for each in files], unseen


def test_files_come_in_the_order_of_their_paths(tmp_path: Path, put) -> None:
    for path in ("b.md", "a/z.md", "a/b/c.md", "a.md", "c/d.txt", "a-b/x.md"):
        put(path)
    assert walked(tmp_path) == (
        ["a/b/c.md", "a/z.md", "a-b/x.md", "a.md", "b.md", "c/d.txt"],
        [],
    )


def test_a_file_is_seen_with_what_tells_that_it_changed(tmp_path: Path, put) -> None:
    file = put("a.md", "12345")
    [seen] = walk(tmp_path, IgnoreRules(tmp_path), pytest.fail)
    details = file.stat()
    assert seen == SeenFile("a.md", 5, details.st_mtime_ns, details.st_ino, details.st_dev)
    assert see(tmp_path, IgnoreRules(tmp_path), "a.md") == seen


def test_walk_and_see_and_decide_agree(tmp_path: Path, put) -> None:
    put(".gitignore", "*.log\nskipped/\n")
    everything = ["a.md", "x.log", "skipped/b.md", "node_modules/c.js", ".env", "d/e.py", "f.png"]
    for path in everything:
        put(path)
    paths, _ = walked(tmp_path)
    rules = IgnoreRules(tmp_path)
    assert paths == ["a.md", "d/e.py"]
    assert paths == [path for path in everything if see(tmp_path, rules, path)]
    assert paths == [path for path in everything if not rules.decide(path, is_dir=False).ignored]
    assert paths == [path for path in everything if not explain(tmp_path, path).ignored]


def test_a_folder_that_is_left_out_is_not_entered(tmp_path: Path, put, monkeypatch) -> None:
    put("node_modules/deep/x.js")
    put("kept/y.md")
    listed: list[str] = []
    scandir = os.scandir
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda path: listed.append(Path(path).name) or scandir(path))
        walked(tmp_path)
    assert listed == [tmp_path.name, "kept"]


def test_a_changed_rule_file_counts_at_the_next_walk(tmp_path: Path, put) -> None:
    put("a.md")
    rules = IgnoreRules(tmp_path)
    assert [each.path for each in walk(tmp_path, rules, pytest.fail)] == ["a.md"]
    put(".gitignore", "*.md\n")
    assert list(walk(tmp_path, rules, pytest.fail)) == []


def test_links_are_not_followed(tmp_path: Path, put) -> None:
    outside = tmp_path.with_name(tmp_path.name + "-outside")
    outside.mkdir()
    (outside / "secret.md").write_text("outside")
    put("real/a.md")
    (tmp_path / "to-file.md").symlink_to(tmp_path / "real/a.md")
    (tmp_path / "to-folder").symlink_to(tmp_path / "real")
    (tmp_path / "out").symlink_to(outside)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling").symlink_to("nowhere")
    assert walked(tmp_path) == (["real/a.md"], [])
    rules = IgnoreRules(tmp_path)
    for path in ("to-file.md", "to-folder/a.md", "out/secret.md", "dangling"):
        assert see(tmp_path, rules, path) is None
    assert "link" in explain(tmp_path, tmp_path / "out/secret.md").rule
    assert walked(tmp_path, below="to-folder") == ([], [])


def test_the_root_itself_may_be_a_link(tmp_path: Path, put) -> None:
    put("real/a.md")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert walked(tmp_path / "link") == (["a.md"], [])
    assert not explain(tmp_path / "link", tmp_path / "link" / "a.md").ignored


def test_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert walked(tmp_path) == ([], [])
    assert explain(tmp_path, "pipe.md").rule == "not a regular file"


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == Path("/dev").stat().st_dev,
    reason="there is no other file system below /dev",
)
def test_another_file_system_is_not_entered() -> None:
    root = Path("/dev")
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".md") as file:
        path = Path(file.name).relative_to(root).as_posix()
        assert see(root, IgnoreRules(root), path) is None
        assert path not in walked(root)[0]
        assert walked(root, below="shm") == ([], [])
        assert explain(root, file.name).rule == "on another file system than the root"
        with pytest.raises(Unreadable, match="another file system"):
            read_file(root, path)


def test_a_walk_can_be_of_one_folder_alone(tmp_path: Path, put) -> None:
    put("a/x.md")
    put("a/b/y.md")
    put("ab/z.md")
    put(".gitignore", "*.no\n")
    put("a/skipped.no")
    assert walked(tmp_path, below="a") == (["a/b/y.md", "a/x.md"], [])
    assert walked(tmp_path, below="gone") == ([], [])
    assert walked(tmp_path, below="ab/z.md") == ([], [])


@needs_permissions
def test_a_folder_that_cannot_be_read_is_named_and_does_not_end_the_walk(
    tmp_path: Path, put
) -> None:
    put("closed/a.md")
    put("open/b.md")
    (tmp_path / "closed").chmod(0)
    try:
        assert walked(tmp_path) == (
            ["open/b.md"],
            [Unseen("closed", "permission denied")],
        )
        with pytest.raises(Unreadable, match="permission denied"):
            see(tmp_path, IgnoreRules(tmp_path), "closed/a.md")
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_folder_that_cannot_be_listed_is_told_from_one_that_is_gone(
    tmp_path: Path, put, monkeypatch
) -> None:
    put("closed/a.md")
    put("open/b.md")
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert walked(tmp_path) == (["open/b.md"], [Unseen("closed", "permission denied")])


def test_a_folder_that_cannot_be_looked_at_is_named_if_it_is_asked_for(
    tmp_path: Path, put, monkeypatch
) -> None:
    long = "x" * 300
    assert walked(tmp_path, below=f"{long}/sub") == (
        [],
        [Unseen(f"{long}/sub", "file name too long")],
    )
    put("closed/sub/a.md")
    lstat = os.lstat

    def refuse(path: str, **options: Any) -> os.stat_result:
        if os.fspath(path).endswith("closed/sub"):
            raise PermissionError(13, "Permission denied", path)
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", refuse)
    assert walked(tmp_path, below="closed/sub") == (
        [],
        [Unseen("closed/sub", "permission denied")],
    )


def test_a_root_that_goes_away_during_a_walk_is_an_error_and_nothing_is_missing(
    tmp_path: Path, put
) -> None:
    root = tmp_path / "root"
    for path in ("a/1.md", "b/2.md"):
        put(f"root/{path}")
    for empty in (False, True):  # as after an unmount
        files = walk(root, IgnoreRules(root), pytest.fail)
        assert next(files).path == "a/1.md"
        root.rename(tmp_path / "away")
        if empty:
            root.mkdir()
        with pytest.raises(Unreadable) as caught:
            list(files)
        assert caught.value.for_now
        if empty:
            root.rmdir()
        (tmp_path / "away").rename(root)


def test_a_root_that_goes_away_while_one_file_is_looked_at_is_an_error(
    tmp_path: Path, put, monkeypatch
) -> None:
    root = put("root/a.md").parent
    lstat = os.lstat

    def vanish(path: str, **options: Any) -> os.stat_result:
        if root.exists():
            root.rename(tmp_path / "away")
        return lstat(path, **options)

    rules = IgnoreRules(root)
    assert see(root, rules, "a.md")
    monkeypatch.setattr(os, "lstat", vanish)
    with pytest.raises(Unreadable, match="cannot be looked at"):
        see(root, rules, "a.md")


def test_a_name_that_is_not_utf8_is_reported_readably(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    with open(folder + b"/caf\xe9.md", "w") as file:  # noqa: PTH123
        file.write("x")
    paths, unseen = walked(tmp_path)
    assert paths == []
    assert unseen == [Unseen("caf\\xe9.md", "its name is not UTF-8")]


def test_a_root_that_is_not_there_is_an_error_and_not_an_empty_folder(tmp_path: Path, put) -> None:
    with pytest.raises(Unreadable, match="cannot be looked at"):
        walked(tmp_path / "gone")
    with pytest.raises(Unreadable, match="is not a folder"):
        walked(put("file.md"))


def test_explain_looks_into_the_file(tmp_path: Path, put) -> None:
    put("data.unknown", b"\x00\x01\x02\x03" * 100)
    put("big.txt", b"x" * (10 * 1024 * 1024 + 1))
    put("fine.txt")
    put("key", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    assert "binary" in explain(tmp_path, "data.unknown").rule
    assert explain(tmp_path, "big.txt").rule == "larger than 10 MB"
    assert explain(tmp_path, "key").rule == "a private key"
    assert not explain(tmp_path, "fine.txt").ignored
    assert not explain(tmp_path, tmp_path).ignored


def test_explain_says_so_where_nobody_may_look(tmp_path: Path, put, monkeypatch) -> None:
    put("closed/a.md")

    def refuse(path: Path, **_: object) -> object:  # nothing is unreadable for root
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        with pytest.raises(Unreadable, match=r"closed cannot be read: permission denied"):
            explain(tmp_path, "closed")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", refuse)
        with pytest.raises(Unreadable, match=r"a\.md cannot be read: permission denied"):
            explain(tmp_path, "closed/a.md")


def test_explain_says_that_there_is_no_text_in_a_file(tmp_path: Path, put) -> None:
    for content in ("", " \n"):
        put("blank.md", content)
        decision = explain(tmp_path, "blank.md")
        assert (decision.ignored, decision.rule) == (True, "without text")


def test_explain_knows_that_a_name_is_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (tmp_path / name).write_text("words")
    assert explain(tmp_path, name).rule == "its name is not UTF-8"


def test_explain_finds_a_file_from_the_working_folder_too(tmp_path: Path, put, monkeypatch) -> None:
    put("sub/.hidden.md")
    monkeypatch.chdir(tmp_path / "sub")
    assert explain(tmp_path, ".hidden.md").rule == "hidden"
    assert explain(tmp_path, "sub/.hidden.md").rule == "hidden"


def test_explaining_what_is_missing_or_outside_is_an_error_with_a_hint(tmp_path: Path, put) -> None:
    root = put("root/a.md").parent
    put("other.md")
    with pytest.raises(NotFound, match=r"no file nowhere\.md") as missing:
        explain(root, "nowhere.md")
    assert missing.value.hint
    with pytest.raises(InvalidInput, match="outside"):
        explain(root, tmp_path / "other.md")
    with pytest.raises(InvalidInput, match="outside"):
        explain(root, "../other.md")
