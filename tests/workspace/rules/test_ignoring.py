"""Which files are memory: one rule, told with where it stands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from byheart.errors import InvalidInput
from byheart.workspace import MAX_FILE_BYTES, IgnoreRules, check_root, walk


def is_kept(root: Path, path: str) -> bool:
    return not IgnoreRules(root).decide(path, is_dir=False).ignored


@pytest.mark.parametrize(
    "path",
    [
        *["README", "Makefile", "Dockerfile", "LICENSE", "notes.md", "a/b/c.txt", "x.unknown"],
        *["main.rs", "app.tsx", "lib.kt", "Main.swift", "init.lua", "style.scss", "schema.sql"],
        *["config.toml", "setup.cfg", "x.ini", "y.conf", "z.xml", "data.csv", "run.zsh", "a.vim"],
        *["paper.pdf", "letter.docx", "book.ipynb", "page.html", "guide.rst", "server.log"],
        *[
            "graph.dot",
            "message.msg",
            "script.exp",
            "example.com",
            "page.asc",
            "Grüße.md",
            "日本.md",
        ],
    ],
)
def test_text_is_memory_whatever_its_name(tmp_path: Path, path: str) -> None:
    assert is_kept(tmp_path, path)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (".hidden", "hidden"),
        (".github/workflows/x.yml", "hidden"),
        ("node_modules/x/index.js", "node_modules"),
        ("a/__pycache__/x.py", "__pycache__"),
        ("target/x.rs", "target"),
        ("photo.PNG", "not a text file type"),
        ("memory.db", "not a text file type"),
        ("memory.db-wal", "not a text file type"),
        ("package-lock.json", "generated or temporary file"),
        ("jquery.min.js", "generated or temporary file"),
        ("notes.md~", "generated or temporary file"),
        (".git/config", "version control"),
        ("sub/.git/HEAD", "version control"),
    ],
)
def test_the_built_in_rules_say_their_name(tmp_path: Path, path: str, rule: str) -> None:
    decision = IgnoreRules(tmp_path).decide(path, is_dir=False)
    assert (decision.ignored, decision.rule, decision.where) == (True, rule, "built-in")


SECRETS = [
    *[".env", "prod.env", ".env.local", ".env.production", ".envrc", "server.pem", "tls.key"],
    *["id_rsa", "id_ed25519", "id_rsa.bak", "cert.p12", "cert.pfx", "passwords.kdbx", ".netrc"],
    *[
        ".npmrc",
        ".pypirc",
        "credentials",
        "credentials.json",
        "aws-credentials.ini",
        "secrets.yaml",
    ],
    *["app.secrets.toml", "mySecrets.json", "client_secret_1.apps.json", "service-account.json"],
    *["service_account_key.json", "terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars"],
    *[
        ".htpasswd",
        "kubeconfig",
        "passwords.txt",
        "Passwords (1).csv",
        "api_keys.txt",
        "apikey.json",
    ],
    *["access_token.json", ".bash_history", ".git-credentials", "key.ppk", "backup.gpg", "ID_RSA"],
    *[
        ".env~",
        "#.env#",
        ".env2",
        ".env copy",
        "credentials.json.bak",
        "secrets.yaml.old",
        ".npmrc~",
    ],
    *["service-account.json.bak", ".netrc.BAK", ".git-credentials.old", "server.key.txt"],
    *["prod-credentials.json.1", "prod.tfvars.json", "secrets.yml.orig~", "shadow.20240101"],
    *["token.json", "auth.json", "jane_accessKeys.csv", "rootkey.csv", "wallet.dat"],
    *["shop-firebase-adminsdk-ab1c2-0123456789.json", "firebase-adminsdk.json", "kubeconfig.yaml"],
    *["prod.kubeconfig.yml", "kubeconfig-prod", "kubeconfig_dev.json", "passwords.md"],
    *["My Passwords.docx", "mots-de-passe.md", "contraseñas.txt", "seed-phrase.md"],
    *["server.key.old", ".ssh/config", ".aws/anything", ".gnupg/x", "a/b/.env", "vpn.ovpn"],
]
ORDINARY = [
    *[
        "secrets.py",
        "tokenizer.py",
        "tokenizer.json",
        "tokens.json",
        "credentials.md",
        "password.ts",
    ],
    *["secret-garden.txt", "password-reset.md", "keyboard.json", "environment.yml", "env.py"],
    *["Secretary.java", "monkey.json", "key_value.yaml", "id_generator.rb", "id_rsa.pub", "key.md"],
    *["passwordless.json", "secretary.yaml", "credential_store.go", "how-to-keep-secrets.rst"],
    *["secret.txt", "the-secret.txt", "shadow.txt", "notes.old.txt", "accesskeys.md"],
    *["kubeconfig.go", "kubeconfig_test.py", "admin.conf", "password.md", "api-keys.md"],
    *["firebase.json", "how-passwords-work.md", "seed.sql", "recovery.md"],
    *["environments.json", "authentication.yaml", "login.html", "keys.py", "pemberton.txt"],
]


@pytest.mark.parametrize("path", SECRETS)
def test_a_secret_file_is_never_memory_whatever_the_rules_say(
    tmp_path: Path, put, path: str
) -> None:
    put(".byheartignore", f"!{path}\n!*\n!.*\n!{path.rpartition('/')[2]}\n!.ssh\n!.aws\n!.gnupg\n")
    decision = IgnoreRules(tmp_path).decide(path, is_dir=False)
    assert (decision.ignored, decision.rule) == (True, "secret file")


@pytest.mark.parametrize("folder", [".kube", ".docker", "a/.aws/sso"])
def test_nothing_in_a_folder_of_secrets_is_memory_even_if_it_is_the_root(
    tmp_path: Path, put, folder: str
) -> None:
    put(f"{folder}/config.json")
    root = tmp_path / folder
    rules = IgnoreRules(root)
    for decision in (rules.decide("", is_dir=True), rules.decide("config.json", is_dir=False)):
        assert (decision.ignored, decision.rule) == (True, "secret file")
    assert list(walk(root, rules, pytest.fail)) == []
    with pytest.raises(InvalidInput, match="keys and passwords"):
        check_root(root)
    check_root(tmp_path)


@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_file_is_not_taken_for_a_secret(tmp_path: Path, path: str) -> None:
    assert is_kept(tmp_path, path)


def test_a_file_over_ten_megabytes_is_left_out(tmp_path: Path) -> None:
    rules = IgnoreRules(tmp_path)
    assert not rules.decide("a.txt", is_dir=False, size_bytes=MAX_FILE_BYTES).ignored
    decision = rules.decide("a.txt", is_dir=False, size_bytes=MAX_FILE_BYTES + 1)
    assert (decision.ignored, decision.rule) == (True, "larger than 10 MB")


def test_a_decision_names_the_pattern_its_file_and_its_line(tmp_path: Path, put) -> None:
    put("docs/.gitignore", "# drafts\n\n*.draft\n!final.draft\n")
    rules = IgnoreRules(tmp_path)
    left_out = rules.decide("docs/a/b.draft", is_dir=False)
    assert (left_out.ignored, left_out.rule, left_out.where) == (
        True,
        "*.draft",
        "docs/.gitignore:3",
    )
    kept = rules.decide("docs/final.draft", is_dir=False)
    assert (kept.ignored, kept.rule, kept.where) == (False, "!final.draft", "docs/.gitignore:4")
    assert rules.decide("other/b.draft", is_dir=False) == type(kept)(False)


def test_what_is_in_a_folder_that_is_left_out_cannot_be_brought_back(tmp_path: Path, put) -> None:
    put(".gitignore", "out/\n!out/kept.md\n")
    put("out/.gitignore", "!*\n")
    put(".byheartignore", "!out/kept.md\n")
    assert not is_kept(tmp_path, "out/kept.md")


def test_byheartignore_decides_before_gitignore(tmp_path: Path, put) -> None:
    put(".gitignore", "*.log\n")
    put("sub/.gitignore", "notes.md\n")
    put(".byheartignore", "!important.log\n!notes.md\nboring.md\n")
    assert is_kept(tmp_path, "a/important.log")
    assert is_kept(tmp_path, "sub/notes.md")
    assert not is_kept(tmp_path, "other.log")
    assert IgnoreRules(tmp_path).decide("boring.md", is_dir=False).where == ".byheartignore:3"


def test_byheartignore_brings_back_what_is_built_in_by_its_name(tmp_path: Path, put) -> None:
    put(".byheartignore", "!node_modules/\n!.github/\n!*.svg\n!yarn.lock\n")
    for path in ("node_modules/x/readme.md", ".github/x.yml", "logo.svg", "yarn.lock"):
        assert is_kept(tmp_path, path), path
    assert not is_kept(tmp_path, ".vscode/x.json")
    assert not is_kept(tmp_path, "node_modules/x/.hidden.md")


def test_gitignore_cannot_bring_back_what_is_hidden_or_built_in(tmp_path: Path, put) -> None:
    put(".gitignore", "!.github/\n!node_modules/\n!*.png\n")
    for path in (".github/x.yml", "node_modules/x.js", "a.png"):
        assert not is_kept(tmp_path, path), path


def test_saying_markdown_only_brings_back_nothing_else(tmp_path: Path, put) -> None:
    put(".byheartignore", "*\n!*/\n!*.md\n")
    assert is_kept(tmp_path, "a/b/c.md")
    for path in ("a/b/c.py", "node_modules/x/readme.md", ".hidden.md", ".cache/x.md"):
        assert not is_kept(tmp_path, path), path


def test_an_environment_is_known_by_what_is_in_it(tmp_path: Path, put) -> None:
    put("my-env/pyvenv.cfg")
    put("cache/CACHEDIR.TAG")
    rules = IgnoreRules(tmp_path)
    assert rules.decide("my-env/lib/x.py", is_dir=False).rule == "virtual environment"
    assert rules.decide("cache/x.txt", is_dir=False).rule == "cache folder"
    assert not rules.decide("other/x.py", is_dir=False).ignored


def test_build_folders_are_left_out_only_beside_a_project_file(tmp_path: Path, put) -> None:
    put("app/package.json", "{}")
    rules = IgnoreRules(tmp_path)
    assert rules.decide("app/dist/x.js", is_dir=False).rule == "dist beside package.json"
    for path in ("notes/build/house.md", "dist/far.md", "vendor/list.md"):
        assert not rules.decide(path, is_dir=False).ignored


def test_a_changed_rule_file_counts_after_a_refresh(tmp_path: Path, put) -> None:
    put("sub/.gitignore", "*.tmpx\n")
    rules = IgnoreRules(tmp_path)
    assert rules.decide("sub/a.tmpx", is_dir=False).ignored
    put("sub/.gitignore", "*.other\n")
    assert rules.refresh("sub/a.tmpx") is None
    assert rules.decide("sub/a.tmpx", is_dir=False).ignored
    assert rules.refresh("sub/.gitignore") == "sub"
    assert not rules.decide("sub/a.tmpx", is_dir=False).ignored
    assert rules.refresh(".byheartignore") == ""
    assert rules.refresh(".git/info/exclude") == ""


def test_a_refresh_is_asked_for_only_if_a_marker_changes_something(tmp_path: Path, put) -> None:
    put("dist/x.js")
    rules = IgnoreRules(tmp_path)
    assert not rules.decide("dist/x.js", is_dir=False).ignored
    package = put("package.json", "{}")
    assert rules.refresh("package.json") == ""
    assert rules.decide("dist/x.js", is_dir=False).ignored
    package.write_text('{"name": "x"}')
    assert rules.refresh("package.json") is None
    assert rules.refresh("sub/package.json") is None


def test_a_marker_where_nobody_may_look_changes_nothing(tmp_path: Path) -> None:
    assert IgnoreRules(tmp_path).refresh("x" * 300 + "/package.json") is None


def test_the_store_itself_is_never_read(tmp_path: Path) -> None:
    rules = IgnoreRules(tmp_path, store=tmp_path / "sub" / "notes.memory")
    for name in ("notes.memory", "notes.memory-wal", "notes.memory-index"):
        assert rules.decide(f"sub/{name}", is_dir=False).rule == "Byheart's own store"
    assert not rules.decide("notes.memory", is_dir=False).ignored


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/hosts", "/x", "a//b", "./x", "a/"])
def test_a_path_that_is_not_below_the_root_is_refused_or_left_out(
    tmp_path: Path, path: str
) -> None:
    with pytest.raises(InvalidInput, match="not a path below the root"):
        IgnoreRules(tmp_path).decide(path, is_dir=False)


def test_a_rule_file_that_is_a_link_or_a_pipe_is_no_rule_file(tmp_path: Path, put) -> None:
    put("rules.txt", "*.md\n")
    (tmp_path / ".gitignore").symlink_to(tmp_path / "rules.txt")
    os.mkfifo(tmp_path / ".byheartignore")
    assert is_kept(tmp_path, "a.md")


def test_patterns_that_make_others_hang_are_answered_at_once(tmp_path: Path, put) -> None:
    put(".gitignore", "*a" * 60 + "*b\n" + "**/a/" * 60 + "b\n" + "[" * 5000 + "\n*.md\n")
    rules = IgnoreRules(tmp_path)
    assert not rules.decide("a" * 250, is_dir=False).ignored
    assert not rules.decide("a/" * 800 + "c", is_dir=False).ignored
    assert rules.decide("a" * 60 + "b", is_dir=False).ignored
    assert rules.decide("x.md", is_dir=False).ignored


@pytest.mark.parametrize("piece", ["1", "-", "(1)", "-copy", ".1", "~", " list"])
def test_names_that_make_others_hang_are_answered_at_once(tmp_path: Path, piece: str) -> None:
    rules = IgnoreRules(tmp_path)
    name = "password" + piece * (200 // len(piece))
    assert not rules.decide(f"{name}.md", is_dir=False).ignored
    assert rules.decide(f"{name}.txt", is_dir=False).ignored == (piece != "~")


def test_a_folder_deeper_than_python_recurses_is_decided(tmp_path: Path) -> None:
    path = "/".join(["d"] * 1200)
    assert not IgnoreRules(tmp_path).decide(path + "/x.md", is_dir=False).ignored
