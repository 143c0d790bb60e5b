"""Callers have files written to one folder, and to nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest

from tests.interfaces.rest.conftest import REPORT, Serve, Server


def write(client: httpx2.Client, memory_id: str, output_path: object, **body: object) -> int:
    answer = client.post(
        f"/memories/{memory_id}/write_to_file", json={"output_path": output_path, **body}
    )
    return answer.status_code


def everything_in(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


def test_a_memory_is_written_into_the_folder_for_files(
    server: Server, client: httpx2.Client, report: str
) -> None:
    path = f"/memories/{report}/write_to_file"
    answer = client.post(path, json={"output_path": "notes/march.md", "include_metadata": False})
    assert answer.status_code == 200
    written = server.settings.files_dir / "default" / "notes" / "march.md"
    assert written.read_text(encoding="utf-8") == REPORT
    assert answer.json()["file_path"] == "default/notes/march.md"
    refused = client.post(path, json={"output_path": "notes/march.md"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "default/notes/march.md exists already"
    assert write(client, report, "notes/march.md", overwrite=True) == 200
    assert written.read_text(encoding="utf-8").startswith("---\nmemory_id:")


@pytest.mark.parametrize(
    "output_path",
    [
        *("/etc/passwd", "../out.md", "a/../../out.md", "..", ".", "", " ", "/", "~", "~/x.md"),
        *("a/..", "..\\out.md", "C:\\out.md", "C:/out.md", "\\\\host\\x", "a\x00b", "a\nb"),
        *("x" * 300, "a/" * 900 + "x", "./../out.md", "~root/x", 7, None, ["a"], {"a": 1}),
    ],
)
def test_no_path_leads_out(
    server: Server, client: httpx2.Client, report: str, tmp_path: Path, output_path: object
) -> None:
    before = everything_in(tmp_path)
    assert write(client, report, output_path, overwrite=True) == 422
    assert {
        each for each in everything_in(tmp_path) - before if not each.startswith("memory.db")
    } == set()


def test_no_link_leads_out(
    server: Server, client: httpx2.Client, report: str, tmp_path: Path
) -> None:
    folder, outside = server.settings.files_dir / "default", tmp_path / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    (outside / "kept.md").write_text("kept")
    (folder / "link").symlink_to(outside)
    (folder / "file.md").symlink_to(outside / "kept.md")
    (folder / "dangling.md").symlink_to(outside / "new.md")
    for output_path in ("link/new.md", "link/kept.md", "file.md", "dangling.md", "link/a/b.md"):
        assert write(client, report, output_path, overwrite=True) == 422, output_path
    assert everything_in(outside) == {"kept.md"}
    assert (outside / "kept.md").read_text() == "kept"


def test_what_is_no_plain_file_is_left_alone(
    server: Server, client: httpx2.Client, report: str
) -> None:
    folder = server.settings.files_dir / "default"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "plain.md").write_text("a")
    for output_path in ("folder", "pipe", "plain.md/below.md"):
        assert write(client, report, output_path, overwrite=True) == 422, output_path


def test_the_store_itself_is_never_written_over(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    server = serve(files_dir=tmp_path, db_path=tmp_path / "default" / "memory.db")
    memory_id = server.store.save("Kept").memory_id
    client = server.client()
    for name in ("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-index", "./memory.db"):
        assert write(client, memory_id, name, overwrite=True) == 422
    assert client.get(f"/memories/{memory_id}").json()["content"] == "Kept"


def test_a_folder_that_is_a_link_itself_is_used(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "files").symlink_to(tmp_path / "real")
    server = serve()
    memory_id = server.store.save("Text").memory_id
    assert write(server.client(), memory_id, "a.md") == 200
    assert (tmp_path / "real" / "default" / "a.md").exists()


def test_no_token_writes_over_what_one_of_another_space_or_session_wrote(server: Server) -> None:
    store, folder = server.store, server.settings.files_dir
    tokens: list[tuple[str | None, str | None, str]] = [
        (None, None, "default"),
        (None, "a", "default/a"),
        (None, "b", "default/b"),
        (None, "..", "default/%2e%2e"),
        ("work", None, "work"),
        ("Work", None, "%57ork"),
        ("..", None, "%2e%2e"),
        ("a/b", None, "a%2fb"),
    ]
    for number, (space, session_id, place) in enumerate(tokens):
        given = {} if space is None else {"space": space}
        text = f"Text number {number}"
        memory_id = store.save(text, session_id=session_id, **given).memory_id
        client = server.client(f"token-{number}", session_id=session_id, **given)
        asked = {"output_path": "a.md", "include_metadata": False}
        answer = client.post(f"/memories/{memory_id}/write_to_file", json=asked)
        assert answer.json()["file_path"] == f"{place}/a.md"
        assert (folder / place / "a.md").read_text() == text
    assert len([each for each in folder.rglob("*") if each.is_file()]) == len(tokens)


def test_a_space_with_the_longest_name_has_a_folder_too(server: Server) -> None:
    for name in ("ü" * 100, "ü" * 99 + "u"):
        memory_id = server.store.save("Text", space=name).memory_id
        assert write(server.client(name[-9:], space=name), memory_id, "a.md") == 200
    assert len(list(server.settings.files_dir.iterdir())) == 2


def test_a_folder_that_cannot_be_made_is_told_without_saying_where_it_is(
    server: Server, client: httpx2.Client, report: str, tmp_path: Path
) -> None:
    server.settings.files_dir.write_text("in the way")
    asked = {"output_path": "notes/a.md"}
    answer = client.post(f"/memories/{report}/write_to_file", json=asked)
    assert answer.status_code == 422
    assert str(tmp_path) not in answer.text


def test_nothing_is_made_for_a_memory_that_is_not_there(
    server: Server, client: httpx2.Client
) -> None:
    assert write(client, "mem_unknown", "a/b.md") == 404
    assert not server.settings.files_dir.exists()
