"""Make the types of settings: how a value is written, checked and read.

Each function makes one field of `Settings`, with its default and its rule.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_VARIABLE = late_pattern(r"\$\{(\w+)\}|\$(\w+)" + (r"|%(\w+)%" if os.name == "nt" else ""))


class Given(NamedTuple):
    """Hold a value as written, its source, and the folder where its relative paths start."""

    raw: object
    source: str
    folder: Path
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """Describe the meaning and the allowed values of a setting, in the metadata of its field."""

    doc: str
    allowed: str
    parse: Callable[[Given], object]
    default_text: str = ""
    secret: bool = False
    has_address: bool = False
    also_variable: str = ""
    is_path: bool = False


def _setting(default: object, rule: Rule) -> Any:
    # An address may hold a password, which must not get into logs and tracebacks.
    shown = not (rule.secret or rule.has_address)
    given = {"default_factory": default} if callable(default) else {"default": default}
    return field(**given, metadata={"rule": rule}, repr=shown)


def flag(default: bool, doc: str, also_variable: str = "") -> Any:
    """Make a setting that is true or false."""

    def parse(given: Given) -> bool:
        word = str(given.raw).strip().lower()
        if word not in (*_TRUE, *_FALSE):
            raise ValueError
        return word in _TRUE

    return _setting(default, Rule(doc, "true or false", parse, also_variable=also_variable))


def number(
    default: int | float, doc: str, minimum: int, maximum: int, unit: type[int] | type[float] = int
) -> Any:
    """Make a setting that is a number within limits."""

    def parse(given: Given) -> int | float:
        try:
            number = unit(str(given.raw).strip())
        except ValueError:
            raise ValueError from None  # the original message is about Python literals
        # This form of the comparison also refuses "nan", for which every comparison is false.
        if not minimum <= number <= maximum:
            raise ValueError
        return number

    noun = "a whole number" if unit is int else "a number"
    return _setting(default, Rule(doc, f"{noun} from {minimum} to {maximum}", parse))


def seconds(default: float, doc: str, minimum: int, maximum: int) -> Any:
    """Make a setting that is a time, with fractions."""
    return number(default, doc, minimum, maximum, float)


def weight(default: float, doc: str) -> Any:
    """Make a setting that weighs one part of a score."""
    return number(default, doc, 0, 1000, float)


def _clean_text(given: Given) -> str:
    if not isinstance(given.raw, str | Path):
        raise ValueError("it must be text, in quotes")
    text = str(given.raw).strip()
    if not text.isprintable():
        raise ValueError("it has a control character")
    return text


def text(default: str, doc: str, *, blank: bool = False) -> Any:
    """Make a setting that is text on one line."""

    def parse(given: Given) -> str:
        text = _clean_text(given)
        if not (text or blank):
            raise ValueError
        return text

    return _setting(default, Rule(doc, "text" if blank else "text that is not blank", parse))


def secret(doc: str, also_variable: str) -> Any:
    """Make a setting that is never shown."""

    def parse(given: Given) -> str | None:
        return _clean_text(given) or None

    rule = Rule(doc, "text", parse, secret=True, also_variable=also_variable)
    return _setting(None, rule)


def web_address(default: str, doc: str) -> Any:
    """Make a setting that is the address of a web service."""

    def parse(given: Given) -> str:
        url = _clean_text(given).rstrip("/")
        if not re.fullmatch(r"https?://[^\s/]\S*", url):
            raise ValueError
        return url

    allowed = "an address that begins with http:// or https://"
    return _setting(default, Rule(doc, allowed, parse, has_address=True))


def choice(default: str, doc: str, choices: tuple[str, ...]) -> Any:
    """Make a setting that is one of several words."""

    def parse(given: Given) -> str:
        return _one_of(choices, given.raw)

    return _setting(default, Rule(doc, "one of " + ", ".join(choices), parse))


def choices(default: tuple[str, ...], doc: str, choices: tuple[str, ...]) -> Any:
    """Make a setting that is a list of some of several words."""

    def parse(given: Given) -> tuple[str, ...]:
        words = given.raw.split(",") if isinstance(given.raw, str) else given.raw
        if not isinstance(words, list | tuple):
            raise ValueError
        chosen = tuple(_one_of(choices, word) for word in words if word != "")
        if len(set(chosen)) < len(chosen):
            raise ValueError("it names something twice")
        return chosen

    return _setting(default, Rule(doc, "a list of " + ", ".join(choices), parse))


def names(doc: str, allowed: str, each: str, pattern: str, default: tuple[str, ...] = ()) -> Any:
    """Make a setting that is a list of names, each of which matches a pattern."""

    def parse(given: Given) -> tuple[str, ...]:
        names = given.raw.split(",") if isinstance(given.raw, str) else given.raw
        if not isinstance(names, list | tuple):
            raise ValueError
        chosen = tuple(str(name).strip().rstrip("/").lower() for name in names if name != "")
        for name in chosen:
            if not re.fullmatch(pattern, name):
                raise ValueError(f"{name!r} is not {each}")
        return tuple(dict.fromkeys(chosen))

    return _setting(default, Rule(doc, allowed, parse))


def _one_of(choices: tuple[str, ...], raw: object) -> str:
    word = str(raw).strip().lower()
    if word not in choices:
        raise ValueError
    return word


def path(default: Callable[[], Path] | None, doc: str, default_text: str = "") -> Any:
    """Make a setting that is the path of a file or folder."""

    def parse(given: Given) -> Path | None:
        text = _clean_text(given)
        if not text and default:
            raise ValueError
        return _expand(text, given) if text else None

    rule = Rule(doc, "the path of a file or folder", parse, default_text, is_path=True)
    return _setting(default, rule)


def paths(doc: str) -> Any:
    """Make a setting that is a list of paths."""

    def parse(given: Given) -> tuple[str, ...]:
        # Accept commas, as in other settings, or the separator of PATH. A path that contains one
        # must be written in a list.
        text = given.raw.replace(os.pathsep, ",") if isinstance(given.raw, str) else given.raw
        each = text.split(",") if isinstance(text, str) else text
        if not isinstance(each, list | tuple) or not all(isinstance(path, str) for path in each):
            raise ValueError
        chosen = [_clean_text(given._replace(raw=path)) for path in each]
        return tuple(dict.fromkeys(str(_expand(path, given)) for path in chosen if path))

    allowed = "a list of paths"
    return _setting((), Rule(doc, allowed, parse))


def store_address(default: Callable[[], str], doc: str, default_text: str) -> Any:
    """Make a setting that is the path or the URL of a store."""

    def parse(given: Given) -> str:
        text = _clean_text(given)
        if not text:
            raise ValueError
        return text if is_not_a_path(text) else str(_expand(text, given))

    rule = Rule(
        *(doc, "a path or a database URL", parse, default_text), has_address=True, is_path=True
    )
    return _setting(default, rule)


def is_not_a_path(text: str) -> bool:
    """Return whether the address of a store is a URL, even a mistyped one, or a store in memory."""
    return "://" in text or text.startswith(("postgres:", "postgresql:")) or text == ":memory:"


def _expand(text: str, given: Given) -> Path:
    """Make a path absolute: expand variables and `~`, and start from the folder of its source."""

    def value_of(match: re.Match[str]) -> str:
        name = next(filter(None, match.groups()))
        if name not in given.environ:
            raise ValueError(f"the variable {name} is not set")
        return given.environ[name]

    expanded = _VARIABLE.sub(value_of, text)
    try:
        return (given.folder / Path(expanded).expanduser()).absolute()
    except RuntimeError as error:  # "~name/…", where pathlib knows no user of that name
        raise ValueError("there is no such user's home folder") from error
