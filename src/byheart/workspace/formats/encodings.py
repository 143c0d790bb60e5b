"""Decode bytes to text, or find that they are not text."""

from __future__ import annotations

import codecs
import re
import unicodedata

from byheart.errors import NotText
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = "is binary: its bytes are no text"
_HEAD_BYTES = 8192
_SAMPLE_BYTES = 65_536
_NON_ASCII_RUN = re.compile(rb"[\x80-\xff]+")
# Terminal control characters (bells, colours, pages, backspaces) do not indicate a binary file.
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_DECLARED = re.compile(rb"(?:charset|coding|encoding)[ \t]*[=:][ \t]*[\"']?([\w.-]{2,30})", re.I)
_DECLARABLE = late_pattern(
    r"(?:iso[-_]?8859|latin|windows[-_]|cp|koi8|gb|big5|s(?:hift[-_]?)?jis|euc|iso[-_]?2022|mac"
    r"|tis|ks[-_]c|johab)[\w.-]*",
    re.IGNORECASE,
)

# The most common letters outside ASCII of a language, by the encodings it is written in. For 23
# short texts in 17 languages, charset-normalizer answered 15 correctly and was often wrong for
# Western Europe ("J³rgen"); the tests show the results of this table.
_WESTERN = "äöüÄÖÜßéèêëàâáãåçñíìîïóòôõøæœúùûÉÀÇÅØÆ¿¡’‘“”„–—…•€«»°§©ªº"
_CENTRAL = "ąćęłńóśźżáčďéěíňřšťúůýžőűăâîşţđŁŚŻČŘŠŽäöüß„”–"
_KANA = "".join(map(chr, (*range(0x3041, 0x3097), *range(0x30A1, 0x30FD)))) + "、。"
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэ"
_LATIN = {
    "cp1252": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859-2": _CENTRAL,
    "cp1254": "ığşçöüİĞŞÇÖÜâî’“”",
    "cp1257": "āčēģīķļņšūžąęėįųŠŽĀČ",
    "cp850": "äöüÄÖÜßéèêëàâáçñíóôúùûåø",
    "mac-roman": "äöüÄÖÜßéèêëàâáçñíóôúùûåø’“”",
}
_ALPHABETS = {
    "cp1251": _RUSSIAN,
    "koi8-r": _RUSSIAN,
    "cp866": _RUSSIAN,
    "cp1253": "αοιετσνηρπκλυμςωάέίόήύώδγθχφβζξψ",
    "cp1255": "יוהלארתבשמנדםעקפןחגצכסטזךףץ",
    "cp1256": "اليمونرتبةعدسفهكقحجشطصخزضثذغظءأإ",
    "cp874": "านรอกเงมยลวดทสตะปบคหแจพชขใไโซ่้ี์ัิืู",
}
_CHARACTERS = {
    "cp932": _KANA,
    "euc-jp": _KANA,
    "gb18030": (
        "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生"
        "自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与"
        "好看学进种将还分此心前面又定见只主没公从,。、:文件数据"
    ),
    "big5": (
        "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生"
        "自會那後能對著事其裡所去行過家十用發天如然作方成者多日都三小軍二無同麼經法當起與"
        "好看學進種將還分此心前面又定見只主沒公從,。、:文件數據"
    ),
    "cp949": (
        "이다는을의에가고로하은지사를한도서기리자대으나인어시일정수해있들안그보부전것라아"
        "제과게만원동할여구"
    ),
}
# The minimum share of usual letters. A third of all two-letter words is in any alphabet, but three
# of twenty characters among the hundred commonest of seven thousand cannot be an accident.
_LEAST_CHARACTERS, _LEAST_LETTERS, _LEAST_LATIN = 0.15, 0.7, 0.3
# Another encoding must beat Windows-1252, the most frequent one, by this margin.
_MARGIN = 0.1
# Accented letters occur alone; letters of other scripts occur side by side.
_SIDE_BY_SIDE = 1.4


@dataclass(frozen=True, slots=True)
class Decoded:
    """Hold a text without its byte order mark, and its encoding."""

    text: str
    encoding: str


def decode(data: bytes) -> Decoded:
    """Decode bytes by their byte order mark, as UTF-8, as declared, or by their letters."""
    found = _decode_marked(data) or _decode_unmarked(data)
    # Many consumers, such as SQLite's functions, end a text at a zero.
    return Decoded(found.text.replace("\0", "\ufffd"), found.encoding)


def _decode_marked(data: bytes) -> Decoded | None:
    """Trust a byte order mark if the rest decodes to text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return None
            _check_letters(text)
            return Decoded(text, encoding)
    return None


def _decode_unmarked(data: bytes) -> Decoded:
    if b"\0" in data[:_HEAD_BYTES]:
        return _decode_utf16(data)
    if len(_CONTROL.findall(data[:_SAMPLE_BYTES])) > len(data[:_SAMPLE_BYTES]) // 100:
        raise NotText(_BINARY)
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return _decode_damaged(data) or _decode_declared(data) or _decode_by_letters(data)


def _decode_utf16(data: bytes) -> Decoded:
    """Decode UTF-16 without a mark: the zero bytes of its spaces are at even or odd places only."""
    head = data[: _HEAD_BYTES & ~1]
    at_even, at_odd = head[::2].count(0), head[1::2].count(0)
    if len(data) % 2 or (at_even and at_odd) or _is_utf8_with_zeros(head):
        raise NotText(_BINARY)
    encoding = "utf-16-be" if at_even else "utf-16-le"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotText(_BINARY) from error
    _check_letters(text)
    return Decoded(text, encoding)


def _is_utf8_with_zeros(head: bytes) -> bool:
    """Distinguish text with a few zeros from UTF-16, which takes any two bytes for a character.

    In UTF-16, every other byte of Latin text is zero, and every other byte of Greek, Cyrillic,
    Hebrew or Arabic is a control character in UTF-8; most other UTF-16 text is not valid UTF-8.
    """
    if len(_CONTROL.findall(head)) >= len(head) / 3 or head.count(0) >= len(head) / 4:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _check_letters(text: str) -> None:
    """Raise if more than a few characters are control, private or unassigned ones."""
    sample = text[:_HEAD_BYTES]
    strange = sum(unicodedata.category(char) in ("Cc", "Cn", "Co") for char in sample)
    strange -= sum(map(sample.count, "\a\b\t\n\v\f\r\x1b"))
    if strange > 1 + len(sample) // 100:
        raise NotText(_BINARY)


def _decode_damaged(data: bytes) -> Decoded | None:
    """Decode UTF-8 with a few invalid bytes, as in a truncated log."""
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    whole = sum(not char.isascii() for char in text[:_SAMPLE_BYTES])
    return Decoded(text, "utf-8, damaged") if whole > 10 * damaged else None


def _decode_declared(data: bytes) -> Decoded | None:
    """Trust `charset=`, `coding:` or `encoding=` at the beginning, if the bytes decode that way."""
    declared = _DECLARED.search(data, 0, 1024)
    name = declared[1].decode("ascii", "replace") if declared else ""
    if not _DECLARABLE.fullmatch(name):
        return None
    # Browsers also read declared Latin-1 as Windows-1252.
    name = "cp1252" if re.fullmatch(r"(?i)iso[-_]?8859[-_]1|latin[-_]?1", name) else name
    try:
        return Decoded(data.decode(name), codecs.lookup(name).name)
    except (LookupError, UnicodeError):
        return None


def _decode_by_letters(data: bytes) -> Decoded:
    """Choose the encoding in which the letters outside ASCII are the usual ones."""
    first = _NON_ASCII_RUN.search(data)
    start = max(0, first.start() - 100) if first else 0
    sample = data[start : start + _SAMPLE_BYTES]
    runs = [len(run) for run in _NON_ASCII_RUN.findall(sample)]
    best = None
    if sum(runs) >= _SIDE_BY_SIDE * len(runs):
        best = _choose(sample, _CHARACTERS, _LEAST_CHARACTERS)
        # "Grüße" has two in a row; no language with accents has three.
        if best is None and max(runs) > 2:
            best = _choose(sample, _ALPHABETS, _LEAST_LETTERS)
    if best is None:
        western = _share(sample, "cp1252", _WESTERN)
        best = _choose(sample, _LATIN, max(_LEAST_LATIN, western + _MARGIN)) or "cp1252"
        if western < _LEAST_LATIN and best == "cp1252" and sum(runs) > len(sample) // 3:
            raise NotText("is no text in any encoding that is known here")
    try:
        return Decoded(data.decode(best), best)
    except UnicodeDecodeError:
        return Decoded(data.decode("latin-1"), "latin-1")


def _choose(sample: bytes, usual: dict[str, str], least: float) -> str | None:
    """Return the encoding with the most usual letters, if there are enough."""
    shares = {encoding: _share(sample, encoding, letters) for encoding, letters in usual.items()}
    best = max(shares, key=lambda encoding: shares[encoding])
    return best if shares[best] >= least else None


def _share(sample: bytes, encoding: str, usual: str) -> float:
    """Return the share of usual letters among those outside ASCII."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    letters = [char for char in text if not char.isascii()]
    known = frozenset(usual)
    return sum(char in known for char in letters) / len(letters) if letters else 0.0
