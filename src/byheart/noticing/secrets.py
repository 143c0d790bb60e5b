"""Find keys, tokens and passwords in a text, by well-known patterns, and take them out.

Whoever saves a text by hand means all of it; what is captured without being asked must not keep
what nobody would have written down. A hash of a commit, a UUID or a picture is no secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# Tokens that say themselves what they are. Each begins with letters of its own and can only begin
# where no word goes on, so that a long run of letters is looked at once.
_TOKENS: Mapping[str, str] = {
    "aws": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "github": r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
    "gitlab": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_.-]{20,300}",
    "slack": r"xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{10,250}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}",
    "stripe": r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9+/=]{24,100}",
    "google": r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{28}"
    r"|ya29\.[A-Za-z0-9_-]{20,1000}",
    "anthropic": r"sk-ant-[A-Za-z0-9_-]{20,250}",
    "openai": r"sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,250}"
    r"|sk-[A-Za-z0-9]{32,250}(?![A-Za-z0-9_-])",
    "hugging face": r"hf_[A-Za-z0-9]{30,100}",
    "npm": r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    "pypi": r"pypi-[A-Za-z0-9_-]{50,400}",
    "sendgrid": r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}",
    "telegram": r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "digitalocean": r"do[opr]_v1_[a-f0-9]{64}",
    "docker": r"dckr_[po]at_[A-Za-z0-9_-]{20,100}",
    "shopify": r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,64}",
    "vault": r"hv[sbr]\.[A-Za-z0-9_-]{24,300}",
    "groq": r"gsk_[A-Za-z0-9]{40,100}",
    "xai": r"xai-[A-Za-z0-9]{40,150}",
    "perplexity": r"pplx-[A-Za-z0-9]{32,100}",
    "replicate": r"r8_[A-Za-z0-9]{30,60}",
    "linear": r"lin_(?:api|oauth)_[A-Za-z0-9]{32,100}",
    "notion": r"ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])",
    "supabase": r"sbp_[a-f0-9]{40,60}",
    "tailscale": r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,100}",
    "fly": r"fm[12]_[A-Za-z0-9+/=_-]{40,2000}",
    "doppler": r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,100}",
    "age": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "byheart": r"bh_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
    # One that was put into base64, as Kubernetes keeps them.
    "private key": r"LS0tLS1CRUdJTiB(?:SU0EgUFJJVkFUR|QUklWQVRF|FQyBQUklWQVRF|PUEVOU1NIIFBSSVZBVE)"
    r"[A-Za-z0-9+/=]{20,20000}",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
}
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?=[AGLSabdefghlnprstwxy0-9])(?:"
    + "|".join(f"(?P<{name.replace(' ', '_')}>{each})" for name, each in _TOKENS.items())
    + ")"
)
_BEGINNINGS = (
    *("AKIA", "ASIA", "ABIA", "ACCA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-"),
    *("glsoat-", "xox", "xapp-", "hooks.slack.com", "sk_", "rk_", "whsec_", "AIza", "GOCSPX-"),
    *("ya29.", "sk-", "hf_", "npm_", "pypi-", "SG.", ":AA", "_v1_", "AGE-SECRET", "bh_", "eyJ"),
    *("dckr_", "shpat_", "shpca_", "shppa_", "shpss_", "hvs.", "hvb.", "hvr.", "gsk_", "xai-"),
    *("pplx-", "r8_", "lin_", "ntn_", "secret_", "sbp_", "tskey-", "fm1_", "fm2_", "dp."),
    "LS0tLS1CRUdJTi",
)
# What is said to be a secret: by a header, an address, an option or a name.
_HEADER = re.compile(
    r"(?i)(?<![a-z])((?:proxy-)?authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
    r"(?:bearer|basic|token|api-?key|key|digest|negotiate)\s{1,3}"
    r"|bearer\s{1,3}(?=[a-z._~+/=-]{0,300}\d)(?=\S{16}))([A-Za-z0-9._~+/=-]{8,4000})"
)
_COOKIE = re.compile(
    r"(?i)(?<![\w-])((?:set-)?cookie\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?)"
    r"([\w.%-]{1,100}=[^\r\n\"'\\]{4,4000})"
)
_SIGNATURE = re.compile(r"(?i)([?&](?:x-(?:amz|goog|ms)-)?sig(?:nature)?=)([^\s&\"'<>]{16,2000})")
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@\"'`<>]{0,100}):"
    r"([^\s/\"'`<>]{1,200})(?=@)"  # up to the last: an address has no other
)
_OPTION = re.compile(r"(?<![\w-])((?:-u|--user)[ =][\"']?[^\s:\"']{1,100}):([^\s\"']{1,200})")
_NAMES = (
    r"pass(?:word|wort|wd|phrase)|(?<=_)pass(?![a-z])|pwd|secret|token|credential"
    r"|(?:api|access|private|auth|account|encryption|signing|master)[_-]?key"
)
# A value in quotes goes to the end of them, whatever stands in it; another one is a run of
# characters of which none separates things in any program.
_ASSIGNMENT = re.compile(
    rf"(?i)({_NAMES})([a-z0-9_]{{0,30}})"
    r"(\\?[\"']?\]?[ \t]{0,3}(?:=>|:=|[:=\uff1a]|[ \t]is[ \t])[ \t]{0,3}(?:\x1b\[[0-9;]{0,9}m)?"
    r"|>(?=[^<>\s]{4,200}</))"
    r"(?:(?P<escaped>\\[\"'`])(?P<a>(?:(?!(?P=escaped))[^\r\n]){4,500})(?=(?P=escaped))"
    r"|(?P<quote>[\"'`])(?P<b>(?:\\.|(?!(?P=quote))[^\r\n\\]){4,500})(?=(?P=quote))"
    r"|(?P<opened>\\?[\"'`]?)(?P<c>[^\s\x00-\x1f\"'`,;()<>{}\[\]&|\\]{4,500}))"
)
# A value that follows its name on a command line, or in a file such as .netrc.
_GIVEN = re.compile(
    rf"(?i)(?<![\w-])(?P<name>--[\w-]{{0,30}}?(?:{_NAMES})[ \t]{{1,3}}"
    r"|sshpass[ \t]{1,3}-p[ \t]{0,3}"
    r"|-pass(?:in|out)?[ \t]{1,3}pass:|login[ \t]{1,3}\S{1,100}[ \t]{1,3}password[ \t]{1,3}"
    r"|(?:mysql|mariadb)\w{0,10}[ \t][^\n|;&]{0,200}?(?<=[ \t])-p)"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"'`;&|<>\[]{4,500})"
)
_SOUNDS = ("pass", "pwd", "secret", "token", "credential", "key")
_GIVERS = ("--", "sshpass", "-pass", "login", "mysql", "mariadb")
_KEY_MARK = "PRIVATE KEY"
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Lines of a key of which the end is missing: numbered by whoever showed them, headers first.
_KEY_BODY = re.compile(
    r"(?:(?>[ \t]{0,10}(?:\d{1,7}(?:\u2192|[:|-][ \t]?|[ \t]{1,4}))?)"
    r"(?>[A-Z][A-Za-z-]{2,20}:[ ][^\n]{0,200}|[A-Za-z0-9+/=\\]*+)[ \t\r]*+(?:\n|\Z))*+"
    r"(?:[ \t]{0,10}[A-Za-z0-9+/=\\]{40,})?"
)
_LONGEST_KEY = 20_000

_PASSWORDS = ("pass", "pwd")
_PATHS = ("/", "~", "./", "../")
# A name that goes on like this is about a secret: it is not its value that follows.
_ABOUTS = (
    "id|ids|name|path|file|dir|url|uri|type|hash|count|len|length|size|limit|field|env|var|label"
    "|prefix|format|policy|rounds|expires?|expiry|ttl|in|at|s"
)
_ABOUT = re.compile(
    rf"(?i:(?:^|_)(?:{_ABOUTS})$)"
    rf"|[a-z0-9](?:{'|'.join(each.title() for each in _ABOUTS.split('|'))})$"
)
_PLACEHOLDER = re.compile(
    r"(?i)(?:[*x.•#-]+|none|null|nil|true|false|undefined|str|string|bytes|secret|required|optional"
    r"|pass(?:word|wd)?|redacted|example\w*|placeholder|change[-_]?me\w*|dummy\w*|your[-_].*|my[-_].*"
    r"|number|boolean|any|unknown|[$%<].*)"
)
_LEAST_KEY_CHARS, _LEAST_BITS_PER_CHAR = 12, 3.0
# A name in a program has no more numbers in it; letters and digits by chance have many.
_NUMBER, _MOST_NUMBERS = re.compile(r"\d+"), 2
# And its words are words.
_WORD, _LEAST_CHARS_OF_WORDS = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|\d+"), 3.5
_MARK = "[redacted: "

Mark = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of each kind it had."""

    text: str
    found: Mapping[str, int]

    @property
    def count(self) -> int:
        """Count the secrets that were taken out."""
        return sum(self.found.values())


def redact(text: str) -> Redacted:
    """Put `[redacted: kind]` in the place of each secret."""
    found: Counter[str] = Counter()

    def mark(kind: str) -> str:
        found[kind] += 1
        return f"{_MARK}{kind}]"

    def named(match: re.Match[str]) -> str:
        name, rest, sign = match.groups()[:3]
        quote = match["escaped"] or match["quote"] or match["opened"] or ""
        value = match["a"] or match["b"] or match["c"]
        if not _is_secret(name, rest, sign, quote, value):
            return match[0]
        return f"{name}{rest}{sign}{quote}{mark(_kind_of(name))}"

    def given(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        is_option = name.startswith("--")
        told = is_option and not match["quote"] and not _is_mixed(value)
        if told or _PLACEHOLDER.fullmatch(value):
            return match[0]
        return f"{name}{match['quote']}{mark(_kind_of(name) if is_option else 'password')}"

    def header(match: re.Match[str]) -> str:
        is_told = match[2].islower() and _is_word(match[2])
        return match[0] if is_told else match[1] + mark("authorization")

    def beside(kind: str, match: re.Match[str]) -> str:
        value = match[2]
        # A user and a group are numbers.
        told = value.isdigit() and "://" not in match[1]
        if told or _PLACEHOLDER.fullmatch(value) or value.startswith(("{", "[")):
            return match[0]
        return f"{match[1]}:{mark(kind)}"

    text = _without_private_keys(text, mark) if _KEY_MARK in text else text
    # Looking for a few letters is a hundred times as fast as looking for what they may begin.
    if any(each in text for each in _BEGINNINGS):
        text = _TOKEN.sub(lambda match: mark((match.lastgroup or "").replace("_", " ")), text)
    plain = text.lower()
    if "bearer" in plain or "authorization" in plain:
        text = _HEADER.sub(header, text)
    if "cookie" in plain:
        text = _COOKIE.sub(lambda match: match[1] + mark("cookie"), text)
    if "sig" in plain:
        text = _SIGNATURE.sub(lambda match: match[1] + mark("signature"), text)
    if "://" in plain:
        text = _ADDRESS.sub(lambda match: beside("password", match), text)
    if "-u" in plain:
        text = _OPTION.sub(lambda match: beside("password", match), text)
    if any(each in plain for each in _SOUNDS):
        text = _ASSIGNMENT.sub(named, text)
    if any(each in plain for each in _GIVERS):
        text = _GIVEN.sub(given, text)
    return Redacted(text, dict(found))


def _is_secret(name: str, rest: str, sign: str, quote: str, value: str) -> bool:
    """Judge the value of a name that sounds like a secret's."""
    if _PLACEHOLDER.fullmatch(value) or (rest and _ABOUT.search(rest)) or _MARK in value:
        return False
    if name.lower().startswith(_PASSWORDS):
        # `password=password` hands a variable on, `DB_PASSWORD=correcthorse` sets one.
        is_set = bool(quote) or sign == ">" or (name.isupper() and "=" in sign)
        told = " " in value and "pass" in value.lower()  # a label: "enter your password"
        return not told and not value.startswith(_PATHS) and (is_set or not _is_name(value))
    if len(value) < _LEAST_KEY_CHARS or value.startswith(_PATHS) or _is_word(value):
        return False
    if not quote and sign.endswith(" ") and _is_expression(value):
        return False
    return _is_mixed(value) and " " not in value and _bits_per_char(value) >= _LEAST_BITS_PER_CHAR


def _kind_of(name: str) -> str:
    return "password" if any(each in name.lower() for each in _PASSWORDS) else "key"


def _is_mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _is_name(value: str) -> bool:
    """Say whether something is a word, but not several: nobody names a variable `one-two`."""
    return _is_word(value) and "-" not in value.strip("-")


def _is_word(value: str) -> bool:
    """Say whether something is a word, or a name in a program such as `settings.password`."""
    return all(char.isalpha() or char in "_.-:!?" for char in value)


def _is_expression(value: str) -> bool:
    """Say whether something is a name in a program that has a number in it: `x509.PrivateKey`."""
    if not all(part.isidentifier() for part in value.split(".")):
        return False
    words = _WORD.findall(value)
    chars = sum(map(len, words)) / max(1, len(words))
    return len(_NUMBER.findall(value)) <= _MOST_NUMBERS and chars >= _LEAST_CHARS_OF_WORDS


def _bits_per_char(value: str) -> float:
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _without_private_keys(text: str, mark: Mark) -> str:
    """Take out private keys, and what there is of one that was cut off."""
    return "".join(_between_private_keys(text, mark))


def _between_private_keys(text: str, mark: Mark) -> Iterator[str]:
    at = 0
    ends = (match.end() for match in _KEY_ENDS.finditer(text))
    end: int | None = next(ends, None)
    for begins in _KEY_BEGINS.finditer(text):
        if begins.start() < at:
            continue
        # Ends are gone through once, however many keys begin.
        while end is not None and end < begins.end():
            end = next(ends, None)
        whole = end is not None and end - begins.start() <= _LONGEST_KEY
        body = _KEY_BODY.match(text, begins.end(), begins.end() + _LONGEST_KEY)
        assert body is not None, "no characters at all are a body too"
        yield text[at : begins.start()]
        yield mark("private key")
        at = end if whole and end is not None else body.end()
    yield text[at:]
