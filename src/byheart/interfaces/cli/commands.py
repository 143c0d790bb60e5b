"""List the verbs. Each is loaded when it is needed, so that help is fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import shell_complete

from byheart import __version__
from byheart.interfaces.cli.errors import INTERRUPTED, OK, report
from byheart.interfaces.cli.verb import VerbGroup

COMPLETE_VARIABLE = "_BYHEART_COMPLETE"


class Entry(NamedTuple):
    """Name the module of a verb, and its purpose."""

    module: str
    purpose: str


# The verbs by the task that they serve; the help lists them in this order.
GROUPS: dict[str, dict[str, Entry]] = {
    "Save and find": {
        "save": Entry("save", "Save a text: a fact, a note, a report, a file."),
        "search": Entry("search", "Find the passages that answer a question, best first."),
        "recall": Entry(
            "recall", "Recall the most important memories for a question, within a token budget."
        ),
        "list": Entry("list", "List memories, latest first."),
        "get": Entry("get", "Print a memory's text exactly as it was saved."),
        "expand": Entry("get", "Print a chunk and its neighbours."),
        "brief": Entry("views", "List memories by id, without their texts, forgotten ones too."),
        "chunks": Entry("views", "List the passages that a memory is divided into, in order."),
        "render": Entry("views", "Print a memory as HTML that a page can show as it is."),
        "similar": Entry("views", "Find the memories nearest to one in meaning, best first."),
        "map": Entry("views", "Name the regions of a map of memories by meaning, largest first."),
        "timeline": Entry("views", "Count memories by day and kind, and list sessions over time."),
    },
    "Change and forget": {
        "update": Entry("update", "Change the given fields of a memory."),
        "supersede": Entry("update", "Mark a memory as replaced by another."),
        "history": Entry("update", "Show all changes of a memory: who, when, from and to."),
        "versions": Entry("views", "Print the texts that a memory has had, the current one first."),
        "forget": Entry(
            "forget", "Hide memories until they are restored, or erase them with --hard."
        ),
        "restore": Entry("update", "Restore a forgotten memory."),
        "feedback": Entry(
            "update", "Say whether a memory found for a question was used, ignored or wrong."
        ),
        "pin": Entry("context", "Include a memory at the top of every context."),
        "unpin": Entry("context", "Undo pin: include the memory only if it is relevant."),
    },
    "Conversations": {
        "log": Entry("turns", "Record a turn of a session: a message, a tool's output, a file."),
        "context": Entry(
            "context", "Print the context for a session's prompt, within a token budget."
        ),
        "receipts": Entry("receipts", "List the receipts of contexts, the latest first."),
        "receipt": Entry("receipts", "Show what went into a prompt, what did not, and why."),
        "transcript": Entry("turns", "Print the turns of a session, in order."),
        "summarize": Entry("turns", "Set the running summary of a session, or generate it."),
        "sessions": Entry("sessions", "List sessions, show their figures, forget or restore one."),
        "resume": Entry("sessions", "Print what is needed to continue a session."),
        "promote": Entry("sessions", "Copy a session's memories to the global ones."),
    },
    "Files": {
        "index": Entry(
            "workspaces", "Index the files of a folder as memories; again, only changed files."
        ),
        "watch": Entry("workspaces", "Index folders and keep them fresh until Ctrl-C."),
    },
    "Review": {
        "review": Entry(
            "review_queue", "List what needs a look, each with its reason; keep items."
        ),
        "quarantine": Entry("review", "List memories that wait for review, longest waiting first."),
        "trust": Entry("review", "Let untrusted memories enter prompts."),
        "distrust": Entry("review", "Keep memories out of prompts until they are reviewed."),
    },
    "Tidy up": {
        "dedupe": Entry("duplicates", "Propose merges of memories that are almost the same."),
        "merge": Entry("duplicates", "Merge several memories into one."),
        "entities": Entry(
            "entities", "List, rename or merge the entities of memories, most used first."
        ),
        "cleanup": Entry("forget", "Forget memories that were not used for long."),
    },
    "Move and keep": {
        "export": Entry(
            "export_import", "Write memories to a JSONL file, or to a folder of Markdown."
        ),
        "import": Entry(
            "export_import", "Import an export, notes, or the memories of other programs."
        ),
        "backup": Entry(
            "export_import", "Copy the whole store to one file, even while it is in use."
        ),
        "copy": Entry(
            "copy", "Copy a whole store to a new file, or to an empty PostgreSQL database."
        ),
        "reembed": Entry(
            "reembed", "Switch the store to the embedding model that the settings name."
        ),
    },
    "Clients and servers": {
        "setup": Entry("setup", "Set up a client, such as Claude Code, to use Byheart over MCP."),
        "uninstall": Entry(
            "uninstall", "Undo what setup wrote, and name the folders that are left."
        ),
        "mcp": Entry("mcp", "Serve one AI client over stdin and stdout (Model Context Protocol)."),
        "hook": Entry("hook", "Answer an agent's hooks: record its turns, and recall memories."),
        "open": Entry("open_page", "Open the web page in your browser, logged in to --space."),
        "serve": Entry(
            "serve", "Serve the web page and REST over HTTP until Ctrl-C, and MCP at /mcp."
        ),
        "worker": Entry("worker", "Make the vectors of saved texts until Ctrl-C, in all spaces."),
        "token": Entry("api_keys", "Create, list and revoke API keys, and end logins of browsers."),
    },
    "Look after the store": {
        "status": Entry("upkeep", "Show the contents of the store, and what does not work now."),
        "stats": Entry("stats", "Show usage figures: contents, search times, slow queries."),
        "doctor": Entry(
            "upkeep", "Check the store, its model and its settings; repair them with --fix."
        ),
        "bench": Entry("bench", "Test whether the store finds its own passages, and how fast."),
    },
    "Byheart itself": {
        "config": Entry("config", "Show and change settings."),
        "model": Entry("model", "Show, download, pack and install the embedding model."),
        "completion": Entry("completion", "Print or install completion for your shell."),
        "version": Entry("version", "Print the version of Byheart and of the parts that it uses."),
    },
}
VERBS = {name: entry for verbs in GROUPS.values() for name, entry in verbs.items()}

# Words that users of other programs type.
SYNONYMS = {
    **dict.fromkeys(("add", "remember", "store", "put"), "save"),
    **dict.fromkeys(("find", "query", "ask", "grep"), "search"),
    **dict.fromkeys(("show", "cat", "read", "fetch"), "get"),
    **dict.fromkeys(("ls", "all"), "list"),
    **dict.fromkeys(("delete", "remove", "rm", "del"), "forget"),
    **dict.fromkeys(("edit", "change", "modify"), "update"),
    **dict.fromkeys(("undo", "undelete"), "restore"),
    **dict.fromkeys(("blame", "changes"), "history"),
    **dict.fromkeys(("say", "append", "record"), "log"),
    **dict.fromkeys(("prompt", "assemble"), "context"),
    **dict.fromkeys(("continue", "pickup"), "resume"),
    **dict.fromkeys(("publish", "globalize"), "promote"),
    **dict.fromkeys(("messages", "turns", "conversation"), "transcript"),
    **dict.fromkeys(("summary", "summarise"), "summarize"),
    **dict.fromkeys(("prune", "expire", "gc"), "cleanup"),
    "replace": "supersede",
    **dict.fromkeys(("rate", "vote", "useful"), "feedback"),
    **dict.fromkeys(("untrusted", "pending"), "quarantine"),
    **dict.fromkeys(("queue", "inbox", "triage"), "review"),
    **dict.fromkeys(("approve", "accept"), "trust"),
    **dict.fromkeys(("reject", "suspect"), "distrust"),
    **dict.fromkeys(("duplicates", "dedup"), "dedupe"),
    **dict.fromkeys(("names", "topics"), "entities"),
    **dict.fromkeys(("settings", "set"), "config"),
    **dict.fromkeys(("benchmark", "test"), "bench"),
    **dict.fromkeys(("check", "repair", "fix"), "doctor"),
    **dict.fromkeys(("dump", "obsidian"), "export"),
    **dict.fromkeys(("load", "ingest"), "import"),
    "snapshot": "backup",
    **dict.fromkeys(("clone", "move", "transfer"), "copy"),
    **dict.fromkeys(("migrate", "rebuild-vectors"), "reembed"),
    **dict.fromkeys(("reindex", "scan", "crawl", "workspaces"), "index"),
    **dict.fromkeys(("install", "init", "register", "connect"), "setup"),
    **dict.fromkeys(("teardown", "unregister", "disconnect"), "uninstall"),
    **dict.fromkeys(("key", "tokens", "auth", "login"), "token"),
    **dict.fromkeys(("server", "http", "rest", "api", "start", "run"), "serve"),
    **dict.fromkeys(("web", "browse", "browser", "ui", "page", "view", "dashboard"), "open"),
    **dict.fromkeys(("embed", "embedder", "vectors", "workers"), "worker"),
    "info": "status",
    "about": "version",
    **dict.fromkeys(("metrics", "statistics"), "stats"),
    "download": "model",
}


class Byheart(VerbGroup):
    """Find and run the verb, and convert errors to exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the verbs, group by group."""
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Load a verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"byheart.interfaces.cli.{VERBS[cmd_name].module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """List the verbs from the table, without loading them."""
        widest = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                # Pad the names, so that the purposes of all groups begin in one column.
                rows = [(name.ljust(widest), entry.purpose) for name, entry in verbs.items()]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or suggest the nearest one."""
        if args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(_unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run one command line and exit."""
        arguments = list(map(_as_utf8, sys.argv[1:])) if args is None else list(args)
        _speak_utf8()
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            sys.exit(shell_complete(self, {}, "byheart", COMPLETE_VARIABLE, instruction))
        sys.exit(self._run(arguments))

    def _run(self, arguments: list[str]) -> int:
        # Arguments after "--" are text, even if they look like flags.
        flags = arguments[: arguments.index("--")] if "--" in arguments else arguments
        color = False if os.environ.get("NO_COLOR") else None
        try:
            code = self._invoke(list(arguments), color)
            sys.stdout.flush()
            return code
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except BrokenPipeError:
            _let_go_of_stdout()
            return OK
        except Exception as error:  # noqa: BLE001 - the outermost handler
            with suppress(OSError):
                sys.stdout.flush()  # print the answer before the error
            return report(error, as_json="--json" in flags, debug="--debug" in flags, color=color)

    def _invoke(self, arguments: list[str], color: bool | None) -> int:
        try:
            with self.make_context("byheart", arguments, color=color) as ctx:
                self.invoke(ctx)
        except click.exceptions.Exit as exit_:
            return exit_.exit_code
        return OK


def _unknown(name: str) -> str:
    if name in ("upgrade", "self-update"):
        return (
            f"there is no command {name!r}: upgrade Byheart with the program that installed it, "
            "for example: uv tool upgrade byheart"
        )
    nearest = SYNONYMS.get(name) or _nearest(name)
    return f"there is no command {name!r}" + (f": did you mean {nearest}?" if nearest else "")


def _nearest(name: str) -> str | None:
    """Return the most similar verb; few misspell the first letter, so another one counts less."""
    import difflib

    close = difflib.get_close_matches(name, VERBS, 3, 0.7)
    return next((each for each in close if each[0] == name[0]), None) or next(
        iter(difflib.get_close_matches(name, VERBS, 1, 0.8)), None
    )


def _as_utf8(argument: str) -> str:
    """Decode an argument as UTF-8, whatever the locale is."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def _speak_utf8() -> None:
    """Write UTF-8 whatever the locale is, and never fail on a character."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _let_go_of_stdout() -> None:
    """Keep Python from flushing into a pipe that nobody reads any more."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    name="byheart",
    cls=Byheart,
    invoke_without_command=True,
    examples=(
        'byheart save "The deploy key is kept in the vault under ci/deploy."',
        'byheart search "where is the key for deployments?"',
        "byheart COMMAND --help",
    ),
)
@click.version_option(__version__, message="byheart %(version)s")
@click.pass_context
def byheart(ctx: click.Context) -> None:
    """Keep what AI agents learn, and find it again by meaning and by keyword."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
