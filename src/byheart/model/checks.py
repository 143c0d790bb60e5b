"""Check the values that callers give, each once, with an error that says what is allowed."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from byheart.errors import InvalidInput
from byheart.language.time_expressions import parse_time
from byheart.model.memories import ORIGINS, Origin
from byheart.startup.late_patterns import late_pattern
from byheart.system import clock

MOST_LABELS = 100
LONGEST_LABEL = 200
LONGEST_TITLE = 1000
LONGEST_SUMMARY = 10_000
LONGEST_PATH = 4096
# The limit of a path inside the server's folder for files. Systems allow some 4,000 bytes in all,
# including the path of that folder.
LONGEST_OUTPUT_PATH = 1000
LONGEST_METADATA_BYTES = 1_000_000
LARGEST_LIMIT = 1000
# The most points of a map.
MOST_POINTS = 20_000
LARGEST_OFFSET = 1_000_000
MOST_TOKENS = 1_000_000
LARGEST_VERSION = 10**9
LARGEST_UTC_OFFSET_MINUTES = 14 * 60
LARGEST_SEED = 2**32 - 1
LONGEST_QUERY = 100_000
MOST_DIMENSIONS = 16_384
LONGEST_TTL_DAYS = 365_000
# Below this similarity, memories are about the same subject but say different things.
LEAST_THRESHOLD = 0.8
_LONGEST_SHOWN = 300

_ZONE = late_pattern(r"UTC|[A-Za-z_]+/[A-Za-z0-9_+/-]+")
_SLUG = late_pattern(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
Choice = TypeVar("Choice", bound=str)
Item = TypeVar("Item")
_Given = TypeVar("_Given")


def show(value: object) -> str:
    """Show a value in an error message: at most as much of it as helps, whatever its type."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - it nests too deep, or its class cannot be shown
        return f"of the type {type(value).__name__}"
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"


def check_callback(name: str, value: _Given) -> _Given:
    """Accept something to call, or nothing."""
    if value is not None and not callable(value):
        raise InvalidInput(f"{name} must be a function, not {show(value)}", "give one, or leave it")
    return value


def check_text(name: str, value: object, *, longest: int, blank: bool = False) -> str:
    """Accept a text that can be stored exactly."""
    if value is None:
        raise InvalidInput(f"{name} is missing", "give a string")
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}", "give a string")
    if not blank and not value.strip():
        raise InvalidInput(f"{name} is blank", f"give {name} at least one visible character")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} is not valid Unicode at character {error.start}",
            "decode the bytes with the right encoding before saving",
        ) from error
    if size > longest:
        raise InvalidInput(
            f"{name} has {size:,} bytes; at most {longest:,} are allowed",
            "save it in parts, or raise max_content_bytes" if name == "content" else "shorten it",
        )
    return value


def check_optional_text(name: str, value: object, longest: int) -> str | None:
    """Accept a text or none."""
    return None if value is None else check_text(name, value, longest=longest)


def at_most(longest: int) -> Callable[[str, object], str | None]:
    """Make a check for optional texts of some length."""
    return lambda name, value: check_optional_text(name, value, longest)


def check_label(name: str, value: object) -> str:
    """Accept a short name: an id, a tag, an agent."""
    return _check_visible(name, check_text(name, value, longest=LONGEST_LABEL))


def check_name(name: str, value: object) -> str:
    """Accept the name of a memory or of a place in it: an id, or a path with any characters."""
    return check_text(name, value, longest=LONGEST_PATH)


def check_path(name: str, value: str | Path) -> Path:
    """Accept the path of a file or folder, expand `~`, and do not require that it exists."""
    if not isinstance(value, str | Path):
        raise InvalidInput(f"{name} must be a path, not {type(value).__name__}", "give it as text")
    if "\0" in str(value):
        raise InvalidInput(f"{name} {show(str(value))} contains a NUL character", "check the path")
    try:
        path = Path(value).expanduser()
        # A path may be too long, in an unreadable folder, or a link to itself.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
        return path
    except OSError as error:
        raise InvalidInput(
            f"{name} {value} cannot be looked at: {error.strerror}", "check the path"
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} {show(str(value))} is not valid Unicode, as a path is", "check the path"
        ) from error
    except RuntimeError as error:
        raise InvalidInput(
            f"{name} {value}: there is no such user",
            "write ./~… if the name begins with a tilde",
        ) from error


def _check_visible(name: str, text: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise InvalidInput(
            f"{name} has control characters: {show(text)}", "use visible characters only"
        )
    return text


def check_memory_id(name: str, value: object) -> str:
    """Accept the id of a memory; refuse the id of a text or chunk, which would conflict later."""
    text = check_label(name, value)
    if "@" in text or "#" in text:
        raise InvalidInput(
            f"{name} {show(text)} names a text or a chunk, not a memory",
            "leave out the part from @ or # on",
        )
    return text


def check_optional_label(name: str, value: object) -> str | None:
    """Accept a short name or none."""
    return None if value is None else check_label(name, value)


def check_optional_labels(name: str, value: object) -> tuple[str, ...] | None:
    """Accept labels, or `None` for labels that are to be derived."""
    return None if value is None else check_labels(name, value)


def check_labels(name: str, value: object) -> tuple[str, ...]:
    """Accept a list of short names; drop duplicates and keep the order."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(
            f"{name} must be a list of texts, not {show(value)}", f'give {name}=["…"]'
        )
    labels = [check_label(name, each) for each in value]
    if len(labels) > MOST_LABELS:
        raise InvalidInput(
            f"{name} has {len(labels)} entries; at most {MOST_LABELS} are allowed",
            "leave out the least useful ones",
        )
    return tuple(dict.fromkeys(labels))


def check_sessions(name: str, value: object) -> tuple[str | None, ...]:
    """Accept the sessions to search; `None` in the list means memories of no session."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(
            f"{name} must be a list of sessions, not {show(value)}", f'give {name}=["…", None]'
        )
    return tuple(None if each is None else check_label(name, each) for each in value)


def check_items(value: Iterable[Item]) -> Iterable[Item]:
    """Accept an iterable of objects."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(
            f"items must be a list of objects, not {type(value).__name__}",
            'give [{"content": "…"}, …]',
        )
    return value


def check_ids(name: str, value: object) -> list[str]:
    """Accept one name of a memory, several, or none."""
    if value is None:
        return []
    several = [value] if isinstance(value, str) else value
    if isinstance(several, Mapping) or not isinstance(several, Iterable):
        raise InvalidInput(f"{name} {show(value)} is not an id", "give a text, or a list of texts")
    return [check_name(name, each) for each in several]


def check_kind(value: object) -> str:
    """Accept a kind: a lower-case slug."""
    return _check_slug(
        "kind",
        value,
        "use letters a-z, digits, _ and -, for example: note, fact, report, working_memory",
    )


def check_kinds(value: object) -> tuple[str, ...]:
    """Accept one kind, several, or none."""
    several = [value] if isinstance(value, str) else value
    return tuple(check_kind(each) for each in check_labels("kind", several))


def check_role(value: object) -> str:
    """Accept the role of a speaker: a lower-case slug."""
    return _check_slug(
        "role", value, "say who speaks: user, assistant, system, tool, or a word of your own"
    )


def check_roles(value: object) -> tuple[str, ...]:
    """Accept one role, several, or none."""
    several = [value] if isinstance(value, str) else value
    return tuple(check_role(each) for each in check_labels("role", several))


def check_origin(value: object) -> Origin | None:
    """Accept whose words a text holds, or none."""
    return None if value is None else check_choice("origin", value, ORIGINS)


def check_origins(value: object) -> tuple[Origin, ...]:
    """Accept one origin, several, or none."""
    several = [value] if isinstance(value, str) else value
    names = check_labels("origin", several)
    return tuple(check_choice("origin", name, ORIGINS) for name in names)


def _check_slug(name: str, value: object, hint: str) -> str:
    slug = check_label(name, value)
    if not _SLUG.fullmatch(slug):
        raise InvalidInput(f"{name} {show(slug)} is not a lower-case slug", hint)
    return slug


def check_choice(name: str, value: object, choices: Sequence[Choice]) -> Choice:
    """Accept one of a few words."""
    for choice in choices:
        if value == choice:
            return choice
    import difflib

    nearest = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    raise InvalidInput(f"{name} {show(value)} is not known", f"{hint}allowed: {', '.join(choices)}")


def check_query(value: object) -> str:
    """Accept any text as a question, and `None` as an empty question."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"query must be text, not {type(value).__name__}", 'give query="…"')
    # A lone surrogate cannot be stored, so no text can match it: search for the rest.
    text = (value or "").encode("utf-8", "replace").decode().strip()
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(
            f"the query has {len(text):,} characters; at most {LONGEST_QUERY:,} are allowed",
            "ask with the part of the text that matters most",
        )
    return text


def check_int(name: str, value: object, low: int, high: int) -> int:
    """Accept a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(
            f"{name} {show(value)} is not allowed", f"give a whole number from {low} to {high:,}"
        )
    return value


def check_validity(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Refuse a validity that ends before it begins."""
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise InvalidInput(
            f"valid_until {valid_until.isoformat()} is not after valid_from "
            f"{valid_from.isoformat()}",
            "give a later valid_until, or leave one of them out",
        )


def check_bool(name: str, value: object) -> bool:
    """Accept true or false only; any other value would be ambiguous."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} {show(value)} is not allowed", "give true or false")
    return value


def check_number(name: str, value: object, low: float, high: float) -> float:
    """Accept a number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(
            f"{name} {show(value)} is not allowed", f"give a number from {low} to {high}"
        )
    return float(value)


def check_vector(name: str, value: object) -> tuple[float, ...] | None:
    """Accept the numbers of a vector, or none; return them as a vector of unit length."""
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        found = _first_numbers(value)
        if len(found) <= MOST_DIMENSIONS and _are_numbers(found):
            with contextlib.suppress(OverflowError):  # an integer may be larger than any float
                numbers = tuple(map(float, found))
                length = math.hypot(*numbers)
                if 0 < length < math.inf:
                    return tuple(each / length for each in numbers)
    raise InvalidInput(
        f"{name} {show(value)} is no vector",
        f"give a list of up to {MOST_DIMENSIONS:,} numbers that are not all 0",
    )


def _first_numbers(value: Iterable[Any]) -> tuple[Any, ...]:
    """Read as many numbers as a vector may have, and one more; none of a table or a scalar."""
    shape, to_list = getattr(value, "shape", None), getattr(value, "tolist", None)
    if isinstance(shape, tuple) and callable(to_list):
        if len(shape) != 1:
            return ()
        if shape[0] <= MOST_DIMENSIONS:
            value = to_list()  # an array gives all at once in half the time
    return tuple(islice(value, MOST_DIMENSIONS + 1))


def _are_numbers(values: tuple[Any, ...]) -> bool:
    # Numbers of other types than these two are rare, and take much longer to recognize.
    return {float, int}.issuperset(map(type, values)) or all(map(_is_number, values))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_importance(name: str, value: object) -> float | None:
    """Accept an importance from 0 to 10, or none."""
    return None if value is None else check_number(name, value, 0, 10)


def check_session_iter(value: object) -> int | None:
    """Accept `2`, `"2"` and `"v2"` as the number 2."""
    if value is None:
        return None
    if isinstance(value, str) and (match := re.fullmatch(r"\s*[vV]?(\d{1,9})\s*", value)):
        return int(match.group(1))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    raise InvalidInput(
        f"session_iter {show(value)} is not an iteration", 'give a number such as 2, "2" or "v2"'
    )


def check_moment(name: str, value: object) -> datetime | None:
    """Accept a date or time, as a datetime or in ISO 8601; without an offset it is in UTC."""
    if value is None:
        return None
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            moment = None
    elif isinstance(value, date) and not isinstance(value, datetime):
        moment = datetime(value.year, value.month, value.day)
    if not isinstance(moment, datetime):
        raise InvalidInput(
            f"{name} {show(value)} is not a date", "give ISO 8601, for example 2026-03-14T09:30:00Z"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(
            f"{name} {show(value)} is out of range", "give a year from 2 to 9998"
        ) from error


def check_time(name: str, value: object) -> datetime | None:
    """Accept a moment, or a time in words: `7d`, `yesterday`, `last March`, `2026-11`.

    A period means its beginning. Words are read in UTC, or in the zone behind them: `yesterday
    Europe/Berlin`.
    """
    if not isinstance(value, str):
        return check_moment(name, value)
    try:
        return check_moment(name, value)
    except InvalidInput:
        moment = _read_time(value)
        if moment is None:
            raise InvalidInput(
                f"{name} {show(value)} is not a time",
                "give ISO 8601, such as 2026-03-14 or 2026-03-14T09:30:00Z, or words: 7d, "
                "2 weeks ago, yesterday, last March, 2026-11, this week",
            ) from None
        return check_moment(name, moment)


def _read_time(text: str) -> datetime | None:
    words, _, last = text.strip().rpartition(" ")
    zone: tzinfo = UTC
    if words and _ZONE.fullmatch(last):
        from zoneinfo import ZoneInfo

        try:
            zone, text = ZoneInfo(last), words
        except (KeyError, ValueError, OSError):  # there is no such zone
            return None
    period = parse_time(text[:_LONGEST_SHOWN], clock.now().astimezone(zone))
    return None if period is None else period.moment


def check_expiry(ttl_days: object, expires_at: object, now: datetime) -> datetime | None:
    """Accept a time to live or a moment, not both; `None` is permanent."""
    if ttl_days is not None and expires_at is not None:
        raise InvalidInput("ttl_days and expires_at were both given", "give one of them")
    if ttl_days is None:
        return check_moment("expires_at", expires_at)
    days = check_number("ttl_days", ttl_days, 0, LONGEST_TTL_DAYS)
    return now + timedelta(days=days)


def check_metadata(value: object) -> Mapping[str, Any]:
    """Accept an object that JSON can carry."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput("metadata must be an object with text keys", 'give metadata={"key": …}')
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"metadata cannot be written as JSON: {error}",
            "use texts, numbers, true, false, null, lists and objects",
        ) from error
    if size > LONGEST_METADATA_BYTES:
        raise InvalidInput(
            f"metadata has {size:,} bytes; at most {LONGEST_METADATA_BYTES:,} are allowed",
            "save the bulk as content",
        )
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


def check_names(given: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """Refuse unknown fields, and name the nearest known field in the error."""
    for name in given:
        if name not in allowed:
            import difflib

            nearest = difflib.get_close_matches(str(name), allowed, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"allowed: {', '.join(allowed)}"
            raise InvalidInput(f"unknown {what} {show(name)}", hint)
