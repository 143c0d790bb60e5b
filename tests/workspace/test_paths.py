"""How paths below one root lie to each other."""

from __future__ import annotations

import pytest

from byheart.workspace import lies_within


@pytest.mark.parametrize("path", ["a/b", "a/b/c.md", "a/b/c/d.md", "x.md"])
def test_a_path_lies_within_itself_and_the_folders_above_it(path: str) -> None:
    assert lies_within(path, {"a/b", "x.md"})
    assert lies_within(path, {""})


@pytest.mark.parametrize("path", ["", "a", "a/bc", "a/b.md", "b", "x.md2"])
def test_a_path_lies_in_no_folder_whose_name_it_only_begins_with(path: str) -> None:
    assert not lies_within(path, {"a/b", "x.md"})
