"""Spell operations as commands of the command line, for every interface that names commands."""

from __future__ import annotations

from byheart.errors import Option, Private, Step, spell_shell

# Verbs whose command has another name.
_COMMANDS = {
    "api_keys.create": "token create",
    "api_keys.list": "token list",
    "api_keys.revoke": "token revoke",
    "entities.list": "entities",
    "entities.merge": "entities merge",
    "receipts.list": "receipts",
    "review.queue": "review",
}


def spell_command(step: Step) -> str:
    """Spell an operation as a command, and a parameter as an option."""
    if isinstance(step, Private):
        return step.text
    if isinstance(step, Option):
        return spell_shell("", (), {step.name: step.value}).removeprefix("byheart").strip()
    options = dict(step.options)
    if step.verb == "supersede" and len(step.values) == 1:
        options["undo"] = True
    for name, value in step.options.items():
        if value is None:
            del options[name]
            options["clear"] = name.replace("_", "-")
    return spell_shell(_COMMANDS.get(step.verb, step.verb.rpartition(".")[2]), step.values, options)
