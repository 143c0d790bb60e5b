"""Define `completion`, which installs the completion of verbs and flags in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from byheart.errors import ByheartError
from byheart.interfaces.cli.commands import COMPLETE_VARIABLE
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import print_json
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.setup.completion_files import SHELLS, completion_file

_NEXT = "start a new shell to use it"
_NEXT_OF_ZSH = (
    "put this into ~/.zshrc, if it is not there yet: fpath+=(~/.zfunc); autoload -U compinit; "
    "compinit"
)


@click.command(
    "completion",
    cls=Verb,
    examples=(
        "byheart completion bash --install",
        'eval "$(byheart completion bash)"',
        "byheart completion fish > byheart.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@flag("--install", is_flag=True, help="Install it in the shell's folder for completions.")
@click.pass_context
def completion_command(ctx: click.Context, shell: str, install: bool) -> None:
    """Print or install completion for your shell.

    SHELL is bash, zsh or fish.
    """
    invocation: Invocation = ctx.obj
    script = _script(ctx.find_root().command, shell)
    if not install:
        click.echo(script)
        return
    path = completion_file(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise ByheartError(
            f"{path} cannot be written: {error.strerror}",
            f"save it yourself: byheart completion {shell} > FILE",
        ) from error
    if invocation.json:
        print_json({"shell": shell, "path": str(path)})
    else:
        click.echo(f"wrote {path}: {_NEXT_OF_ZSH if shell == 'zsh' else _NEXT}")


def _script(command: click.Command, shell: str) -> str:
    completion = get_completion_class(shell)
    assert completion is not None, "click knows all of SHELLS"
    return completion(command, {}, "byheart", COMPLETE_VARIABLE).source()
