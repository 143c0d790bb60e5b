"""Projects: one for all worktrees of a repository, another for every other folder."""

from __future__ import annotations

from pathlib import Path

from byheart.conversation.agent_events import project_of


def make_repository(folder: Path) -> Path:
    (folder / ".git" / "worktrees" / "fix").mkdir(parents=True)
    (folder / "src").mkdir()
    return folder


def test_folders_of_a_repository_are_one_project(tmp_path: Path) -> None:
    shop = make_repository(tmp_path / "shop")
    assert project_of(str(shop)) == project_of(str(shop / "src"))
    assert str(project_of(str(shop))).startswith("shop-")


def test_a_worktree_is_of_the_project_of_its_repository(tmp_path: Path) -> None:
    shop = make_repository(tmp_path / "shop")
    other = tmp_path / "elsewhere" / "fix"
    other.mkdir(parents=True)
    own = shop / ".git" / "worktrees" / "fix"
    (other / ".git").write_text(f"gitdir: {own}\n")
    (own / "commondir").write_text("../..\n")
    assert project_of(str(other)) == project_of(str(shop))


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    shop = make_repository(tmp_path / "shop")
    module = shop / ".git" / "modules" / "lib"
    module.mkdir(parents=True)
    (shop / "lib").mkdir()
    (shop / "lib" / ".git").write_text("gitdir: ../.git/modules/lib")
    assert str(project_of(str(shop / "lib"))).startswith("lib-")


def test_two_folders_of_the_same_name_are_two_projects(tmp_path: Path) -> None:
    make_repository(tmp_path / "a" / "shop")
    make_repository(tmp_path / "b" / "shop")
    first, second = (project_of(str(tmp_path / each / "shop")) for each in "ab")
    assert first != second


def test_a_folder_that_is_gone_or_of_another_system_has_a_name() -> None:
    assert str(project_of("/no/such/place/mill")).startswith("mill-")
    assert str(project_of("C:\\Users\\ada\\mill")).startswith("mill-")
    assert project_of("") is None
