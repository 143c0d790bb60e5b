"""Our reading of ignore files is git's own, asked on generated trees."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byheart.workspace import IgnoreRules

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

# Names that no built-in rule knows: what git decides is all there is to decide.
NAMES = [
    "a",
    "b",
    "ab",
    "ba",
    "a.b",
    "b.x",
    "aab",
    "a b",
    "a[b]",
    "a-b",
    "x",
    "-",
    "a]",
    "!a",
    "#a",
]
PIECES = [
    *["a", "b", "x", ".", "-", "*", "**", "?", "/", "/**/", "**/", "/**", "[ab]", "[!a]", "[^b]"],
    *["[a-b]", "[b-a]", "[]a]", "[a-]", "[[:alpha:]]", "[[:digit:]x]", "[", "\\", "\\*", "\\a"],
    *["\\[", " ", "\\ ", "]", "#", "!", "[a\\]b]", "[[:nope:]]", "***", "\t"],
]
patterns = st.builds(
    lambda negated, pieces, folder: negated + "".join(pieces) + folder,
    st.sampled_from(["", "", "!", "/", "!/", "\\!", "\\#"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    st.sampled_from(["", "", "/", " ", "  ", "\r"]),
).filter(lambda pattern: "\\/" not in pattern)  # An escaped slash is none to git after `**` alone.
plain = st.builds(
    lambda negated, path, folder: negated + "/".join(path) + folder,
    st.sampled_from(["", "!", "/", "!/"]),
    st.lists(
        st.sampled_from(["a", "b", "ab", "*", "**", "a*", "*.b", "x"]), min_size=1, max_size=3
    ),
    st.sampled_from(["", "/"]),
)
rule_files = st.lists(st.one_of(patterns, plain, plain), min_size=1, max_size=6).map("\n".join)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    nowhere = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return {**os.environ, **nowhere, "XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def empty_repository(environment: dict[str, str]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="byheart-git-"))
    subprocess.run(["git", "init", "-q", folder], check=True, env=environment)
    yield folder
    shutil.rmtree(folder)


def ask_git(
    root: Path, asked: list[str], environment: dict[str, str]
) -> dict[str, tuple[bool, str]]:
    """Give for each path whether git ignores it, and the line that decides."""
    done = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "-z", "-v", "-n", "--stdin"],
        input="\0".join([*asked, ""]),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    fields = done.stdout.split("\0")[:-1]
    answers = {}
    for source, line, pattern, path in zip(*(iter(fields),) * 4, strict=True):
        answers[path] = (
            bool(source) and not pattern.startswith("!"),
            f"{source}:{line}" * bool(source),
        )
    return answers


def plant(root: Path, files: list[str]) -> None:
    """Make the files that can be: where a file stands no folder can."""
    for path in files:
        file = root / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(exist_ok=True)
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            continue


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    files=st.lists(paths, min_size=4, max_size=12),
    top=rule_files,
    nested=st.dictionaries(st.sampled_from(["a", "b", "a/b", "ab"]), rule_files, max_size=2),
    exclude=st.one_of(st.just(""), rule_files),
)
def test_decisions_and_the_lines_that_make_them_are_those_of_git(
    files: list[str],
    top: str,
    nested: dict[str, str],
    exclude: str,
    empty_repository: Path,
    environment: dict[str, str],
) -> None:
    root = empty_repository
    for entry in root.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    plant(root, files)
    (root / ".git/info/exclude").write_text(exclude, newline="")
    (root / ".gitignore").write_text(top, newline="")
    for folder, text in nested.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text(text, newline="")
    everything = sorted(
        each.relative_to(root).as_posix()
        for each in root.rglob("*")
        if ".git" not in each.parts and each.name != ".gitignore"
    )
    rules = IgnoreRules(root)
    expected = ask_git(root, everything, environment) if everything else {}
    assert sorted(expected) == everything
    for path, (ignored, where) in expected.items():
        decision = rules.decide(path, is_dir=(root / path).is_dir())
        assert (decision.ignored, decision.where or "") == (ignored, where), (
            *(path, decision, top, nested, exclude),
        )


def test_a_repository_around_the_root_counts_and_so_does_its_exclude_file(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True, env=environment)
    (tmp_path / ".gitignore").write_text("/docs/drafts/\n*.skip\n")
    (tmp_path / ".git/info/exclude").write_text("/docs/mine.md\n")
    root = tmp_path / "docs"
    plant(root, ["drafts/x.md", "a.skip", "mine.md", "kept.md"])
    rules = IgnoreRules(root)
    assert rules.decide("drafts/x.md", is_dir=False).where == "../.gitignore:1"
    assert rules.decide("a.skip", is_dir=False).where == "../.gitignore:2"
    assert rules.decide("mine.md", is_dir=False).where == "../.git/info/exclude:1"
    assert not rules.decide("kept.md", is_dir=False).ignored


def test_a_worktree_has_the_exclude_file_of_its_repository(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "-q", main], check=True, env=environment)
    subprocess.run(
        ["git", "-C", main, *identity, "commit", "-q", "--allow-empty", "-m", "x"],
        check=True,
        env=environment,
    )
    subprocess.run(
        ["git", "-C", main, "worktree", "add", "-q", linked], check=True, env=environment
    )
    (main / ".git/info/exclude").write_text("mine.md\n")
    assert IgnoreRules(linked).decide("mine.md", is_dir=False).ignored
    assert not IgnoreRules(linked).decide("other.md", is_dir=False).ignored


def test_a_repository_within_another_has_rules_of_its_own(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    inner = tmp_path / "deep/inner"
    for repository in (tmp_path, inner):
        subprocess.run(["git", "init", "-q", repository], check=True, env=environment)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".git/info/exclude").write_text("mine.md\n")
    (tmp_path / ".byheartignore").write_text("*.draft\n")
    (inner / ".git/info/exclude").write_text("theirs.md\n")
    names = ["a.log", "mine.md", "theirs.md", "x.draft"]
    plant(inner, names)
    plant(tmp_path / "deep", names)
    rules = IgnoreRules(tmp_path)
    by_git = ask_git(inner, names[:3], environment)
    decided = {name: rules.decide(f"deep/inner/{name}", is_dir=False).ignored for name in names}
    assert decided == {name: ignored for name, (ignored, _) in by_git.items()} | {"x.draft": True}
    assert decided == {"a.log": False, "mine.md": False, "theirs.md": True, "x.draft": True}
    assert [rules.decide(f"deep/{name}", is_dir=False).ignored for name in names] == [
        *(True, True, False, True),
    ]
