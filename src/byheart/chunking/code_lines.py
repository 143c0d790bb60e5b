"""Tell code, configuration and scripts from Markdown, whose headings look like their comments."""

from __future__ import annotations

import re

from byheart.startup.late_patterns import late_pattern

# Marks that only Markdown has: fences, front matter, and the line below the head of a table.
_ONLY_MARKDOWN = late_pattern(
    r"^ {0,3}(?:```|~~~)|\A\ufeff?---[ \t]*\r?\n(?s:.+?)^---[ \t]*$|^ {0,3}\|?[ \t]*:?-+:?[ \t]*\|",
    re.MULTILINE,
)
# Marks that Markdown often has and code seldom: links, bold words, a subheading above a blank line,
# an underlined heading.
_RATHER_MARKDOWN = late_pattern(
    r"\[[^\]\n]{1,200}\]\([^)\n]{1,500}\)|\*\*\w[^*\n]{0,200}\*\*"
    r"|^#{2,6}[ \t]+\w[^\n]*\n[ \t]*\r?\n|^[^\n]+\n(?:={4,}|-{4,})[ \t]*\r?$",
    re.MULTILINE,
)
# Two lines of comment in a row, or a comment of another kind at the top.
_COMMENTS = late_pattern(
    r"^[ \t]*#(?![^\s#])[^\n]*\n[ \t]*#(?:[ \t][^\n]*)?\r?$|\A\s*(?:/\*|//|--[ \t])", re.MULTILINE
)
_IS_COMMENT = late_pattern(r"\s*(?:#|//|/?\*|--|;|%|\"\"\"|''')")
_COMMANDS = (
    "import from export local set unset use my our sub proc source function def class return"
    " include require echo printf exit cd sudo pip npm apt-get git docker FROM RUN COPY ENV CMD"
    " WORKDIR ENTRYPOINT ARG EXPOSE SELECT INSERT CREATE DROP GRANT puts eval namespace package"
    " let const var public private static void int struct typedef global lappend upvar variable"
)
_CODE = late_pattern(
    rf"""\s*(?:
        .*[;{{}}\\]\s*$                                     # a statement, a block, a line continued
      | [-+*/\w.$@%&\[\]'"]+\s*(?:[-+*/|&?:.]|\|\||//)?=(?!=)    # an assignment
      | .*[\w\]]\(.*[(),:;\]]\s*$                           # a call
      | \[+[-\w.\ :"'/]+\]+\s*$ | [)\]}}] | </?[a-zA-Z!]    # a section, an end, a tag
      | (?:fi|done|esac|then|else|endif|end|do|begin|try|pass|break|continue|true|false)\b\W*$
      | (?:if|elif|elsif|elseif|while|for|foreach|case|until|unless|ifeq|ifdef|ifndef)\b
            .*(?:[\[({{:$]|then|do)
      | (?:{"|".join(_COMMANDS.split())})\s+[-\w$'"{{(<@%&*./:\\]+.*[^.?!\s]\s*$
      | \$\{{?\w | @\w | \.\w+\s                            # a variable, a decorator, a directive
      | .*\s--?[a-z][-\w]*(?:[=\ ]\S+)?\s*$                 # a command with a flag
      | .*[|&>]{{1,2}}\s*(?:/dev/null|\w)                   # a pipe, a redirection
    )""",
    re.VERBOSE,
)
# A key, or an item of one word: notes have these too.
_ENTRY = late_pattern(
    r"\s*(?:(?:-\s+)*[\w.$/\"'{][-\w.$/\"'{} ]{0,40}:(?:\s*$|\s+[^A-Z\s]|\s+\S+\s*$)"
    r"|-\s+[-\w./$@:=\"'*{}\[\]]+\s*$)"
)
# Five words in a row, perhaps behind the mark of a list or a quotation.
_PROSE = late_pattern(
    r"\s*(?:[-*+]\s+|\d+[.)]\s+|>\s*)?[\"'(*_`\[]*[A-Za-z][\w'’*_`\[\]()-]*,?"
    r"(?:\s+[\"'(*_`\[]*[A-Za-z0-9][\w'’*_`\]()/.-]*[,;:]?){4}"
)
_LONGEST_LINE = 500
_YAML = late_pattern(
    r"^[\w\"'][\w\"'./-]*:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*#[^\n]*\n)*(?: +|- )\S", re.MULTILINE
)
_BLOCK_MARKS = late_pattern(r"[;{]\s*$", re.MULTILINE)
_SHELL = late_pattern(
    r"^[ \t]*(?:(?:fi|done|esac)[ \t]*$|export [A-Z]\w*=|(?:if|while) (?:\[|!|test )"
    r"|for \w+ in [^\n:]+;|sudo |apt-get )",
    re.MULTILINE,
)


def looks_like_code(sample: str) -> bool:
    """Say whether a text has few sentences and many statements, keys or commands."""
    if _ONLY_MARKDOWN.search(sample):
        return False
    lines = [
        line
        for line in sample.splitlines()
        if len(line) <= _LONGEST_LINE and line.strip() and not _IS_COMMENT.match(line)
    ]
    has_comments = _COMMENTS.search(sample) is not None
    signs = (_CODE, _ENTRY) if has_comments or _YAML.search(sample) else (_CODE,)
    is_code = [any(sign.match(line) for sign in signs) for line in lines]
    code = sum(is_code)
    pairs = zip(lines, is_code, strict=True)
    prose = sum(not known and _PROSE.match(line) is not None for line, known in pairs)
    if _RATHER_MARKDOWN.search(sample):
        return has_comments and code >= max(1, 0.7 * len(lines), 4 * prose)
    if has_comments:
        return code >= max(1, 0.2 * len(lines), 1.5 * prose)
    return code >= max(2, 0.5 * len(lines), 3 * prose)


def name_language(sample: str) -> str:
    """Name the language of a text that looks like code, as far as cutting it depends on it."""
    if _YAML.search(sample) and not _BLOCK_MARKS.search(sample):
        return "yaml"
    return "bash" if _SHELL.search(sample) else "plain"
