"""Write answers as short text for a model or a person.

Control marks in search results are broken up. The text of a single memory stays exact, because a
model may change a part of it and save it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byheart.conversation.prompt import break_marks
from byheart.conversation.prompt.recall_text import HEADING, write_detail, write_line
from byheart.interfaces.mcp.tool_texts import ToolText
from byheart.model.workspaces import STALE

Wire = dict[str, Any]
# How many of the ids that a filter found are named in a text.
_MOST_NAMED = 10


def write_text(tool: ToolText, given: Mapping[str, Any], answer: Wire) -> str:
    """Write an answer, with a note if it is degraded and the call that reads on if it was cut."""
    parts = [_WRITERS[tool.verb](answer)]
    if answer.get("has_more") and not answer.get("truncated"):
        shown = len(answer.get("results") or answer.get("index") or answer.get("memories") or ())
        parts.append(f"There is more: ask again with offset={given.get('offset', 0) + shown}.")
    parts += [f"Note: {answer[name]}" for name in ("degraded", "remark") if answer.get(name)]
    if answer.get("truncated"):
        parts.append(_read_on(answer.get("read_on")))
    return "\n\n".join(parts)


def _read_on(call: Wire | None) -> str:
    if call is None:
        return "Cut for length."
    arguments = ", ".join(f"{name}={value!r}" for name, value in call["arguments"].items())
    return f"Cut for length. Read on with {call['tool']}({arguments})."


def _saved(answer: Wire) -> str:
    lines = [f"{answer['status']}: {answer['memory_id']} (version {answer['version']})"]
    if answer["pending_vectors"]:
        lines.append("Its vectors are still to be made: until then it is found by keyword only.")
    if answer.get("degraded"):
        lines.append(f"The reason: {answer['degraded']}")
    if answer.get("secrets_found"):
        kinds = ", ".join(answer["secrets_found"])
        done = "was replaced" if answer.get("secrets_redacted") else "is saved as given"
        lines.append(f"It contains a probable secret ({kinds}), which {done}.")
    if answer.get("conflicts"):
        lines.append(
            "It contradicts what is saved. If it replaces that, memory_update with superseded_by:"
        )
        lines += [
            f"- {each['memory_id']}: {break_marks(each['said_before'])}"
            for each in answer["conflicts"]
        ]
    if answer.get("similar"):
        lines.append("Almost the same is already saved:")
        lines += [
            f"- {each['memory_id']}: {break_marks(each['summary'])}" for each in answer["similar"]
        ]
    return "\n".join(lines)


def _found(answer: Wire) -> str:
    hits = answer["results"]
    if not hits:
        held = answer["index"]["memories"]
        return f"Nothing found among {held} memories." if held else "There are no memories yet."
    shown = [_hit(number, hit) for number, hit in enumerate(hits, start=1)]
    return "\n\n".join([*shown, *_conflicting(answer), *_doubt(answer)])


def _conflicting(answer: Wire) -> list[str]:
    """Warn of hits that contradict each other, and say which of two is the newer one."""
    if not answer.get("conflicts"):
        return []
    lines = ["Some contradict each other; the newer one is named first:"]
    lines += [
        f"- {each['memory_id']}: {break_marks(each['says'])} / "
        f"{each['other_id']}: {break_marks(each['other_says'])}"
        for each in answer["conflicts"]
    ]
    return ["\n".join(lines)]


def _doubt(answer: Wire) -> list[str]:
    """Warn if the results may not answer the question."""
    sure = f"(confidence {answer['confidence']:.2f})"
    if answer["verdict"] == "none":
        return [f"Probably none of these answers the question {sure}: it may not be in memory."]
    if answer["verdict"] == "weak":
        return [f"It is not sure that these answer the question {sure}."]
    return []


def _hit(number: int, hit: Wire) -> str:
    name = hit.get("chunk_id", hit["memory_id"])
    title = hit.get("title") or hit.get("header_path") or ""
    text = hit.get("chunk_content") or hit.get("section_content") or hit.get("content") or ""
    similarity = hit.get("similarity")
    compared = similarity is not None and similarity <= 1  # a listing has a higher one
    near = [f"similarity {similarity:.2f}"] if compared else []
    about = ", ".join([*_about(hit), *near, *_explained(hit.get("explanation"))])
    shown = f"{number}. [{name}] {title}\n({about})\n{text.strip()}".replace("] \n", "]\n")
    return break_marks(shown)


def _about(entry: Wire) -> list[str]:
    """Describe in a few words where a memory comes from."""
    said = f"{entry['kind']} by {entry['role']}" if entry.get("role") else entry["kind"]
    about = [said, entry["created_at"][:10]]
    if entry.get("path"):
        lines = f":{entry['start_line']}-{entry['end_line']}" if "start_line" in entry else ""
        about.append(f"{entry['path']}{lines}")
    if entry.get("session_id"):
        about.append(f"session {entry['session_id']}")
    if entry.get("stale"):
        about.append(STALE)
    if entry.get("damaged"):
        about.append("damaged: this is not the text that was saved")
    if entry.get("untrusted_at"):
        about.append("untrusted: nobody has reviewed it")
    if entry.get("valid_from"):
        about.append(f"valid from {entry['valid_from'][:10]}")
    if entry.get("valid_until"):
        about.append(f"valid until {entry['valid_until'][:10]}")
    if entry.get("superseded_by"):
        about.append(f"replaced by {entry['superseded_by']}")
    return about


def _explained(explanation: Wire | None) -> list[str]:
    """Name the rank of a hit in each retriever."""
    if explanation is None:
        return []
    retrievers = {"by keyword": explanation.get("fts"), "by meaning": explanation.get("vector")}
    return [f"{name} {_place(found.get('rank'))}" for name, found in retrievers.items() if found]


def _place(rank: int | None) -> str:
    """Name the rank of a hit; a retriever knows only the ranks of its first hits."""
    return "beyond the first places" if rank is None else f"in place {rank + 1}"


def _recalled(answer: Wire) -> str:
    if not answer["index"]:
        matches = answer["total_count"]
        if matches:
            return f"{matches} memories match, but none fits in max_tokens: ask for more."
        return "Nothing to recall about that."
    text = answer["text"] if "text" in answer else _recalled_again(answer)
    return "\n\n".join([text.rstrip("\n"), *_doubt(answer)])


def _recalled_again(answer: Wire) -> str:
    """Write a recall that was cut."""
    given = {each["id"] for each in answer["details"]}
    listed = [write_line(each) for each in answer["index"] if each["id"] not in given]
    full = [write_detail(each) for each in answer["details"]]
    return "".join([*full, *([HEADING, *listed] if listed else [])])


def _read(answer: Wire) -> str:
    about = [*_about(answer), f"version {answer['version']}"]
    if answer["tags"]:
        about.append("tags: " + ", ".join(answer["tags"]))
    title = f" {answer['title']}" if answer.get("title") else ""
    return f"[{answer['memory_id']}]{title}\n({', '.join(about)})\n{answer['content']}"


def _forgotten(answer: Wire) -> str:
    count, kind = answer["count"], "for good" if answer["hard"] else "until restored"
    memories = _memories(count)
    if not count:
        return "Nothing was forgotten: no memory matches, or all are forgotten already."
    if answer["dry_run"]:
        named = ", ".join(answer["memory_ids"][:_MOST_NAMED])
        more = ", …" if count > _MOST_NAMED else ""
        return (
            f"Would forget {memories} {kind}: {named}{more}. Nothing was changed: repeat with "
            "dry_run=false."
        )
    if answer.get("still_found"):
        return f"Forgot {memories} {kind}, but still found: {', '.join(answer['still_found'])}"
    removal = answer.get("removal") or {}
    said = {"Not finished": removal.get("unfinished"), "Not proved": removal.get("unproved")}
    told = [f" {name}: {text}." for name, text in said.items() if text]
    return "".join([f"Forgot {memories} {kind}.", *told])


def _waiting(answer: Wire) -> str:
    if not answer["memories"]:
        return "No memory waits for review."
    listed = [
        f"- {each['memory_id']} ({', '.join(_about(each))}): {each['summary']}"
        for each in answer["memories"]
    ]
    return break_marks("\n".join([f"{answer['total']} wait for review:", *listed]))


def _reviewed(answer: Wire) -> str:
    named = ", ".join(answer["memory_ids"]) or "nothing new"
    return f"It waits for the user's review: {named}."


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def _sessions(answer: Wire) -> str:
    if not answer["sessions"]:
        return "There are no such sessions."
    return "\n".join(
        f"- {each['session_id']}"
        + (f" ({each['agent_id']})" if each.get("agent_id") else "")
        + f": {_memories(each['memory_count'])}, last {each['latest_activity'][:16]}, "
        + ", ".join(each["kinds"])
        for each in answer["sessions"]
    )


def _status(answer: Wire) -> str:
    index = answer["index"]
    return (
        f"Space {answer['space']}: {index['memories']} memories, {index['chunks']} passages, "
        f"{index['pending_vectors']} without vectors; model {index.get('model', 'none')}; "
        f"{'writable' if answer['writable'] else 'read-only'}."
        + (f" The store is {answer['store']}." if answer.get("store") else "")
    )


_WRITERS: Mapping[str, Callable[[Wire], str]] = {
    "save": _saved,
    "update": _saved,
    "search": _found,
    "recall": _recalled,
    "get": _read,
    "forget": _forgotten,
    "context": lambda answer: answer["text"] or "There is nothing to show.",
    "log": _saved,
    "quarantine": _waiting,
    "distrust": _reviewed,
    "feedback": lambda answer: f"Noted: {answer['memory_id']} was {answer['outcome']}.",
    "sessions": _sessions,
    "status": _status,
}
