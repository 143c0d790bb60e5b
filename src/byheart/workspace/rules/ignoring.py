"""Decide which files are indexed; the walk and the watcher use the same rules."""

from __future__ import annotations

import os
from pathlib import Path

from byheart.errors import InvalidInput
from byheart.startup.dataclass_types import dataclass
from byheart.workspace.paths import lies_within
from byheart.workspace.rules.builtin_rules import (
    VERSION_CONTROL,
    find_file_rule,
    find_folder_rule,
    find_marked_folders,
)
from byheart.workspace.rules.globs import Glob
from byheart.workspace.rules.rule_files import RuleFile, read_exclude, read_rules
from byheart.workspace.rules.secret_files import SECRET, is_secret

MAX_FILE_BYTES = 10 * 1024 * 1024
TOO_LARGE = "larger than 10 MB"
BUILT_IN = "built-in"
GITIGNORE, BYHEARTIGNORE, EXCLUDE = ".gitignore", ".byheartignore", ".git/info/exclude"

_Chain = tuple[RuleFile, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Say whether a path is ignored, by which rule, and where that rule is located."""

    ignored: bool
    rule: str = ""
    where: str | None = None


KEPT = Decision(False)


@dataclass(frozen=True, slots=True)
class _Folder:
    """Hold the rule files that apply to the entries of one folder, the nearest first."""

    decision: Decision
    own: _Chain = ()
    git: _Chain = ()
    exclude: _Chain = ()


class IgnoreRules:
    """Decide which files below a root are indexed; rule files are cached until `refresh`.

    Secrets and version-control folders are always ignored. Then the first of these decides:
    `.byheartignore`; a leading dot in the name (ignored); `.gitignore` (the nearest first) and
    `.git/info/exclude`; the built-in rules. A file in an ignored folder cannot be re-included.
    Not thread-safe.
    """

    def __init__(self, root: Path, *, store: Path | None = None) -> None:
        self.root = root.expanduser().resolve()
        self._root = os.fspath(self.root).rstrip("/")
        # Opening and closing a database as a file drops this process's locks on it.
        self._store = store.expanduser().resolve() if store else None
        self._folders: dict[str, _Folder] = {}

    def decide(self, path: str, *, is_dir: bool, size_bytes: int | None = None) -> Decision:
        """Decide whether a path below the root is ignored, by itself or with a parent folder."""
        if not path:
            return self._learn(path).decision
        parent, _, name = path.rpartition("/")
        if not name or path[0] == "/":
            _check(path)
        folder = self._folders.get(parent) or self._learn(parent)
        if folder.decision.ignored:
            return folder.decision
        if is_dir:
            # The caller will ask about the folder's entries next, so cache its rules now.
            return (self._folders.get(path) or self._learn(path)).decision
        decision = self._decide_entry(folder, path, name, is_dir=False)
        if not decision.ignored and size_bytes is not None and size_bytes > MAX_FILE_BYTES:
            return Decision(True, TOO_LARGE, BUILT_IN)
        return decision

    def refresh(self, path: str) -> str | None:
        """Drop cached rules that a changed file affects; return the folder to walk again."""
        parent, _, name = path.rpartition("/")
        if path == EXCLUDE or path.endswith("/" + EXCLUDE):
            folder = path.removesuffix(EXCLUDE).rstrip("/")
        elif name in (GITIGNORE, BYHEARTIGNORE):
            folder = parent
        else:
            return self._refresh_marked(parent, name)
        self.forget(folder)
        return folder

    def _refresh_marked(self, parent: str, marker: str) -> str | None:
        """Decide again about folders that depend on a marker file in or beside them.

        Marker files (`package.json`) are edited often, but rarely created or deleted.
        """
        changed = False
        for name in find_marked_folders(marker):
            folder = "/".join(filter(None, (parent, name)))
            if not folder or not os.path.isdir(self._join(folder)):  # noqa: PTH112 - never raises
                continue
            before = self._folders.get(folder)
            self.forget(folder)
            after = self.decide(folder, is_dir=True)
            changed = changed or before is None or before.decision != after
        return parent if changed else None

    def forget(self, folder: str = "") -> None:
        """Drop the cached rules of a folder and its subfolders."""
        if not folder:
            self._folders.clear()
            return
        forgotten = {folder}
        self._folders = {
            path: known for path, known in self._folders.items() if not lies_within(path, forgotten)
        }

    def _learn(self, path: str) -> _Folder:
        """Read the rules of a folder and its parents, from the root down."""
        _check(path)
        known = self._folders.get("")
        if known is None:
            known = self._folders[""] = self._read_rules_here("", self._above())
        parent = path.rpartition("/")[0]
        above = self._folders.get(parent) if parent else None
        known, at = (known, 0) if above is None else (above, len(parent) + 1)
        while path and at < len(path):
            end = path.find("/", at)
            end = len(path) if end < 0 else end
            here = path[:end]
            folder = self._folders.get(here)
            if folder is None:
                folder = known
                if not known.decision.ignored:
                    decision = self._decide_entry(known, here, path[at:end], is_dir=True)
                    folder = _Folder(decision, known.own, known.git, known.exclude)
                    if not decision.ignored:
                        folder = self._read_rules_here(here, folder)
                self._folders[here] = folder
            known, at = folder, end + 1
        return known

    def _read_rules_here(self, path: str, above: _Folder) -> _Folder:
        folder = self._join(path)
        lead = f"{path}/" if path else ""
        skip = len(lead)
        own = read_rules(folder / BYHEARTIGNORE, lead + BYHEARTIGNORE, skip=skip)
        git = read_rules(folder / GITIGNORE, lead + GITIGNORE, skip=skip)
        exclude = None
        if os.path.lexists(folder / ".git"):
            # This is a separate repository, such as a submodule: git ignores the rules around it.
            above = _Folder(above.decision, above.own)
            exclude = read_exclude(folder, f"{lead}.git", skip=skip)
        elif own is git is None:
            return above
        return _Folder(
            above.decision,
            (own, *above.own) if own else above.own,
            (git, *above.git) if git else above.git,
            (exclude,) if exclude else above.exclude,
        )

    def _above(self) -> _Folder:
        """Read the rules of the git repository around the root, if there is one."""
        folders = [self.root, *self.root.parents]
        top = next((folder for folder in folders if os.path.lexists(folder / ".git")), self.root)
        # A root inside a folder of secrets is ignored too, like folders below a root.
        hidden = any(is_secret(part, is_dir=True) for part in self.root.parts)
        above = _Folder(Decision(True, SECRET, BUILT_IN) if hidden else KEPT)
        for folder in reversed(folders[1 : folders.index(top) + 1]):
            lead = self.root.relative_to(folder).as_posix() + "/"
            up = "../" * lead.count("/")
            git = read_rules(folder / GITIGNORE, up + GITIGNORE, lead=lead)
            exclude = read_exclude(folder, f"{up}.git", lead=lead)
            above = _Folder(
                above.decision,
                (),
                (git, *above.git) if git else above.git,
                (exclude, *above.exclude) if exclude else above.exclude,
            )
        return above

    def _decide_entry(self, folder: _Folder, path: str, name: str, *, is_dir: bool) -> Decision:
        if is_secret(name, is_dir=is_dir):
            return Decision(True, SECRET, BUILT_IN)
        if is_dir and name in VERSION_CONTROL:
            return Decision(True, "version control", BUILT_IN)
        if self._store and not is_dir and self._belongs_to_store(path, name):
            return Decision(True, "Byheart's own store", BUILT_IN)
        kept = KEPT
        lifts_hidden = lifts_built_in = False
        if folder.own and (found := _find(folder.own, path, name, is_dir=is_dir)):
            rules, glob = found
            if not glob.negated:
                return _decided(rules, glob)
            kept = _decided(rules, glob)
            lifts_hidden = glob.last_part.startswith(".")
            lifts_built_in = _is_specific(glob)
        if name[0] == "." and not lifts_hidden:
            return Decision(True, "hidden", BUILT_IN)
        if (
            kept is KEPT
            and (folder.git or folder.exclude)
            and (found := _find((*folder.git, *folder.exclude), path, name, is_dir=is_dir))
        ):
            kept = _decided(*found)
            if kept.ignored:
                return kept
        if not lifts_built_in:
            rule = find_folder_rule(self._join(path), name) if is_dir else find_file_rule(name)
            if rule is not None:
                return Decision(True, rule, BUILT_IN)
        return kept

    def _belongs_to_store(self, path: str, name: str) -> bool:
        store = self._store
        return (
            store is not None
            and name.startswith(store.name)
            and self._join(path).parent == store.parent
        )

    def _join(self, path: str) -> Path:
        return Path(f"{self._root}/{path}") if path else self.root


def _find(chain: _Chain, path: str, name: str, *, is_dir: bool) -> tuple[RuleFile, Glob] | None:
    """Return the deciding pattern of the nearest rule file that has one."""
    for rules in chain:
        glob = rules.find(path, name, is_dir=is_dir)
        if glob is not None:
            return rules, glob
    return None


def _decided(rules: RuleFile, glob: Glob) -> Decision:
    return Decision(not glob.negated, glob.text, f"{rules.where}:{glob.line}")


def _is_specific(glob: Glob) -> bool:
    """Check whether a negation names more than "everything".

    Users write `*`, `!*/`, `!*.md` for "Markdown only"; that must not re-include node_modules.
    """
    return bool(glob.last_part.strip("*"))


def check_root(root: Path) -> None:
    """Raise if a folder may never be indexed."""
    if IgnoreRules(root).decide("", is_dir=True).ignored:
        raise InvalidInput(
            f"{root} is, or is in, a folder where keys and passwords are kept",
            "name another folder: nothing in this one is ever read",
        )


def _check(path: str) -> None:
    """Raise if a path is not below the root."""
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise InvalidInput(f"{path!r} is not a path below the root", "give it without `..` and `/`")
