"""Judge whether the match of a rule is a secret, and where the secret ends.

The rules in secret_patterns.json name their judges. A judge returns the secret's position in the
text and its kind, or None if the match only looks like a secret.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from byheart.extraction.secret_rules import Rule, load_words
from byheart.startup.late_patterns import late_pattern

MARK = "[redacted: "


class Found(NamedTuple):
    """Hold the position of a secret in a text, and its kind."""

    start: int
    end: int
    kind: str


Judge = Callable[[Rule, re.Match[str]], Found | None]

_PASSWORDS = ("pass", "pwd")
_PATHS = ("/", "~", "./", "../")
# A name that ends like this only concerns a secret (`token_ttl`): the value after it is no secret.
_ABOUTS = (
    "id|ids|name|path|file|dir|url|uri|type|hash|count|len|length|size|limit|field|env|var|label"
    "|prefix|format|policy|rounds|expires?|expiry|ttl|in|at|s"
)
_ABOUT = late_pattern(
    rf"(?i:(?:^|_)(?:{_ABOUTS})$)"
    rf"|[a-z0-9](?:{'|'.join(each.title() for each in _ABOUTS.split('|'))})$"
)
_PLACEHOLDER = late_pattern(
    r"(?i)(?:[*x.•#-]+|none|null|nil|true|false|undefined|str|string|bytes|secret|required|optional"
    r"|pass(?:word|wd)?|redacted|example\w*|placeholder|change[-_]?me\w*|dummy\w*|your[-_].*|my[-_].*"
    r"|number|boolean|any|unknown|[:@]?[$%<].*"
    # Values that examples and tests use: "mysecretpassword", "wrong_password".
    r"|(?:(?:my|your|test|new|old|wrong|invalid|correct|some|strong|super|secure|secret|user|admin"
    r"|plain|hashed|sample|fake)[-_]?){1,3}pass(?:word|wd|phrase)?\d{0,3})"
)
# Option values that say where a password comes from.
_SOURCES = late_pattern(
    r"(?i)(?:prompt|ask|stdin|env|file|interactive|yes|no|on|off|always|never|auto|default|enabled"
    r"|disabled)(?::.*)?|(?:your|my|new|old|the|db|admin|user)?_?pass(?:word|wd|phrase)?_?(?:here)?"
)
# Methods, sizes and formats in descriptions of passwords: "is SHA256-hashed", "is 8-digit".
_METHOD = late_pattern(
    r"(?i)(?:sha-?\d|md5|base64|bcrypt|scrypt|argon|pbkdf|utf-?\d|ascii|aes|rsa"
    r"|\d+[- ]?(?:char|digit|bit|byte|letter|day|week|month|year|hour|minute|second|step|factor))"
)
_LEAST_KEY_CHARS, _LEAST_BITS_PER_CHAR = 12, 3.0
# An identifier in a program contains few numbers; random letters and digits contain many.
_NUMBER, _MOST_NUMBERS = late_pattern(r"\d+"), 2
_WORD, _LEAST_CHARS_OF_WORDS = late_pattern(r"[A-Z]*[a-z]+|[A-Z]+|\d+"), 3.5
_LETTERS = late_pattern(r"[^\W\d_]+")
_LEAST_SEED_WORDS, _SEED_LENGTHS = 12, (12, 15, 18, 20, 21, 24)
_TRAILING = ".,;:!?)*_…”»"
_SYMBOLS = frozenset("!@#$%^&*+~=")
_PIN_DIGITS = range(4, 13)
_ENDS_SENTENCE = late_pattern(r"[*_`)]{0,3}(?:[.!](?:\s|\Z)|,\s|\s{0,3}(?:\r?\n|\Z))")


def judge(rule: Rule, match: re.Match[str]) -> Found | None:
    """Return the part of a match that is a secret, or None."""
    return JUDGES[rule.judge](rule, match) if rule.judge else _whole(rule, match)


def kind_of(name: str) -> str:
    """Return the kind of secret that a name announces: a password or a key."""
    return "password" if any(each in name.lower() for each in _PASSWORDS) else "key"


def is_secret(name: str, rest: str, sign: str, quote: str, value: str) -> bool:
    """Return whether the value of a suspicious name is a secret."""
    if _PLACEHOLDER.fullmatch(value) or (rest and _ABOUT.search(rest)) or MARK in value:
        return False
    if name.lower().startswith(_PASSWORDS):
        # `password=password` passes a variable on; a name in capitals sets a password.
        is_set = bool(quote) or sign == ">" or (name.isupper() and "=" in sign)
        told = " " in value and "pass" in value.lower()  # a label: "enter your password"
        return not told and not value.startswith(_PATHS) and (is_set or not _is_name(value))
    if len(value) < _LEAST_KEY_CHARS or value.startswith(_PATHS) or _is_word(value):
        return False
    if not quote and sign.endswith(" ") and _is_expression(value):
        return False
    return _is_mixed(value) and " " not in value and _bits_per_char(value) >= _LEAST_BITS_PER_CHAR


# --- Judges, which the data file refers to by name -----------------------------------------------


def _whole(rule: Rule, match: re.Match[str]) -> Found:
    for group in rule.groups:
        if match[group] is not None:
            return Found(*match.span(group), rule.kind)
    return Found(*match.span(), rule.kind)


def _value(rule: Rule, match: re.Match[str]) -> str:
    found = _whole(rule, match)
    return match.string[found.start : found.end]


def _number_in_base64(rule: Rule, match: re.Match[str]) -> Found | None:
    """Accept the token of a bot, which begins with the number of the bot in base64."""
    decoded = _decode(match["number"])
    return _whole(rule, match) if decoded is not None and decoded.isdigit() else None


def _login_in_base64(rule: Rule, match: re.Match[str]) -> Found | None:
    """Accept `user:password` in base64, as Docker and npm store it."""
    decoded = _decode(match["value"]) or b""
    user, colon, password = decoded.partition(b":")
    readable = decoded.isascii() and decoded.decode("ascii").isprintable()
    return _whole(rule, match) if user and colon and password and readable else None


def _login_or_mixed(rule: Rule, match: re.Match[str]) -> Found | None:
    found = _login_in_base64(rule, match)
    return found or (_whole(rule, match) if _is_mixed(match["value"]) else None)


def _no_plain_word(rule: Rule, match: re.Match[str]) -> Found | None:
    value = _value(rule, match)
    return None if value.islower() and _is_word(value) else _whole(rule, match)


def _no_placeholder(rule: Rule, match: re.Match[str]) -> Found | None:
    value = _value(rule, match)
    if _PLACEHOLDER.fullmatch(value) or value.startswith(("{", "[")):
        return None
    return _whole(rule, match)


def _no_number(rule: Rule, match: re.Match[str]) -> Found | None:
    """Refuse a number, because it is a user or group id."""
    return None if _value(rule, match).isdigit() else _no_placeholder(rule, match)


def _option(rule: Rule, match: re.Match[str]) -> Found | None:
    value = _value(rule, match).rstrip(_TRAILING)
    if value.startswith(_PATHS) or _SOURCES.fullmatch(value) or "pass" in value.lower():
        return None
    return _no_placeholder(rule, match)


def _assigned(rule: Rule, match: re.Match[str]) -> Found | None:
    quote = match["escaped"] or match["quote"] or match["opened"] or ""
    found = _whole(rule, match)
    value = match.string[found.start : found.end]
    value = "".join(value.split()) if "\n" in value else value
    if not quote and match.string[found.end : found.end + 1] == "(" and _is_call(value):
        return None
    if not is_secret(match["name"], match["rest"], match["sign"], quote, value):
        return None
    return found._replace(kind=kind_of(match["name"]))


def _given(rule: Rule, match: re.Match[str]) -> Found | None:
    name, value = match["name"], match["value"]
    is_option = name.startswith("--")
    told = is_option and not match["quote"] and not _is_mixed(value)
    if told or _PLACEHOLDER.fullmatch(value):
        return None
    kind = kind_of(name) if is_option else rule.kind
    return _whole(rule, match)._replace(kind=kind)


def _said(rule: Rule, match: re.Match[str]) -> Found | None:
    """Judge a password in a sentence: "the password for the router is …"."""
    if match["quoted"] is not None:
        quoted = match["quoted"].rstrip()
        start = match.start("quoted")
        short = len(quoted.split()) <= 6 and "pass" not in quoted.lower()
        told = quoted.lower() in load_words().told or _PLACEHOLDER.fullmatch(quoted)
        return Found(start, start + len(quoted), rule.kind) if short and not told else None
    start = match.start("bare")
    value = match["bare"].rstrip(_TRAILING)
    end = start + len(value)
    if len(value) < 4 or _is_told(value):
        return None
    is_statement = match["thing"] is not None or match["sign"].strip() not in (":", "：")
    if _looks_chosen(value):
        is_found = True
    elif value.isdigit():
        is_found = is_statement and len(value) in _PIN_DIGITS
    else:
        ends = _ENDS_SENTENCE.match(match.string, end) is not None
        is_found = is_statement and ends and value.isalpha()
    # "pin" is also a word of electronics and bowling, so only digits after it are a secret.
    if match[0][:3].lower() == "pin" and not value.isdigit():
        is_found = False
    return Found(start, end, rule.kind) if is_found else None


def _said_in_ascii(rule: Rule, match: re.Match[str]) -> Found | None:
    """Judge ASCII characters after the word for password in a text of another script."""
    start = match.start("value")
    value = match["value"].rstrip(_TRAILING)
    if len(value) < 4 or _is_told(value):
        return None
    return Found(start, start + len(value), rule.kind)


def _looks_like_password(rule: Rule, match: re.Match[str]) -> Found | None:
    value = _value(rule, match)
    return _whole(rule, match) if _looks_chosen(value) and not _is_told(value) else None


def _seed_words(rule: Rule, match: re.Match[str]) -> Found | None:
    """Accept twelve or more words that are no sentence; stop where a wallet's list ends."""
    start, text = match.start("value"), match["value"]
    function_words = load_words().function_words
    last = count = 0
    for word in _LETTERS.finditer(text):
        if word[0].lower() in function_words:
            break
        if count in _SEED_LENGTHS and "\n\n" in text[last : word.start()]:
            break
        count, last = count + 1, word.end()
    return Found(start, start + last, rule.kind) if count >= _LEAST_SEED_WORDS else None


def _phrase_of_words(rule: Rule, match: re.Match[str]) -> Found | None:
    words, phrase = load_words(), _LETTERS.findall(match["value"].lower())
    if any(each in words.function_words or "pass" in each for each in phrase):
        return None
    # One descriptive word may occur in a passphrase ("correct horse battery staple"). Two such
    # words show that the text is about a password.
    return None if sum(each in words.told for each in phrase) > 1 else _whole(rule, match)


JUDGES: Mapping[str, Judge] = {
    "assigned": _assigned,
    "given": _given,
    "login_in_base64": _login_in_base64,
    "login_or_mixed": _login_or_mixed,
    "looks_chosen": _looks_like_password,
    "no_number": _no_number,
    "no_placeholder": _no_placeholder,
    "no_plain_word": _no_plain_word,
    "number_in_base64": _number_in_base64,
    "option": _option,
    "phrase_of_words": _phrase_of_words,
    "said": _said,
    "said_in_ascii": _said_in_ascii,
    "seed_words": _seed_words,
}


# --- Tests of a value's form ------------------------------------------------------------------


def _decode(text: str) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return None


def _looks_chosen(value: str) -> bool:
    """Return whether an unquoted value looks like a password: with digits, signs or many words."""
    if any(char in "(){}[]<>|" for char in value):
        return False
    has_letter = any(char.isalpha() for char in value)
    has_digit = any(char.isdigit() for char in value)
    several = value.count("-") >= 2 and all(part.isalpha() for part in value.split("-"))
    return has_letter and (has_digit or several or not _SYMBOLS.isdisjoint(value))


def _is_told(value: str) -> bool:
    """Return whether the value describes a password rather than being one."""
    words, plain = load_words(), value.lower()
    if plain in words.told or "pass" in plain or MARK in value or plain.startswith("http"):
        return True
    if value.startswith(_PATHS) or _PLACEHOLDER.fullmatch(value) or _METHOD.match(value):
        return True
    return value.isalpha() and plain.endswith(words.told_endings)


def _is_call(value: str) -> bool:
    """Return whether a value before a bracket is a function: `argon2.hash_password(`."""
    return "." in value and all(part.isidentifier() for part in value.split("."))


def _is_mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _is_name(value: str) -> bool:
    """Return whether a value may name a variable: a word, but not `one-two`."""
    return _is_word(value) and "-" not in value.strip("-")


def _is_word(value: str) -> bool:
    """Return whether a value is a word, or an identifier such as `settings.password`."""
    return all(char.isalpha() or char in "_.-:!?" for char in value)


def _is_expression(value: str) -> bool:
    """Return whether a value is an identifier that contains a number: `x509.PrivateKey`."""
    if not all(part.isidentifier() for part in value.split(".")):
        return False
    words = _WORD.findall(value)
    chars = sum(map(len, words)) / max(1, len(words))
    return len(_NUMBER.findall(value)) <= _MOST_NUMBERS and chars >= _LEAST_CHARS_OF_WORDS


def _bits_per_char(value: str) -> float:
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())
