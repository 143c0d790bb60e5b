"""Bytes become the text that somebody wrote, whatever the encoding."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.errors import NotText
from byheart.workspace.formats.encodings import decode

TEXT = "Grüße aus Köln, 日本 και Привет 🎉\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (b"", "utf-8"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
    ],
)
def test_unicode_is_read_with_and_without_a_mark(mark: bytes, encoding: str) -> None:
    decoded = decode(mark + TEXT.encode(encoding))
    assert (decoded.text, decoded.encoding) == (TEXT, encoding)


# What a short file in an old encoding looks like, in the languages that were written in it.
OLD = [
    ("cp1252", "Die Größe der Straße übersteigt die Möglichkeiten. Bitte prüfen Sie das."),
    ("cp1252", "Schöne Grüße"),
    ("cp1252", "Grüße"),
    ("latin-1", "café"),
    ("latin-1", "déjà vu à côté"),
    ("cp1252", "L’été dernier, nous avons mangé des crêpes près d'Orléans. Ça coûte 5 €."),
    ("cp1252", "El niño comió piñas. ¿Cuántos años tiene usted? ¡Qué bonito!"),
    ("latin-1", "På sjön åt vi smörgåsar och drack öl hela dagen."),
    ("latin-1", "A ação não foi concluída até amanhã. Você está em São Paulo?"),
    ("cp1252", "Perché la città è più bella di lunedì"),
    ("latin-1", "Blåbærgrød på en ø"),
    ("cp1252", "// Autor: Jürgen Müller\nint main(void) {\n    return 0;\n}\n"),
    ("cp1252", "“quoted” — text"),
    ("cp850", "Schöne Grüße aus München"),
    ("cp1250", "Zażółć gęślą jaźń. Wszyscy ludzie rodzą się wolni i równi."),
    ("iso8859-2", "Zażółć gęślą jaźń, łąka"),
    ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. Všichni lidé rodí se svobodní."),
    ("cp1254", "Bütün insanlar hür ve haklar bakımından eşit doğarlar. İstanbul çok güzel şehir."),
    ("cp1257", "Visi cilvēki piedzimst brīvi un vienlīdzīgi savā pašcieņā un tiesībās"),
    ("cp1251", "Все люди рождаются свободными и равными в своем достоинстве и правах."),
    ("cp1251", "Привет"),
    ("koi8-r", "Все люди рождаются свободными и равными в своем достоинстве и правах."),
    ("cp866", "Все люди рождаются свободными"),
    ("cp1253", "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια."),
    ("cp1255", "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם"),
    ("cp1256", "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق"),
    ("cp874", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน"),
    ("cp932", "すべての人間は、生まれながらにして自由であり、かつ、平等である。"),
    ("cp932", "# 設定ファイル\nname = x\n"),
    ("euc-jp", "すべての人間は、生まれながらにして自由であり、かつ、平等である。"),
    ("gbk", "// 读取文件并返回内容\nint main() { return 0; }\n"),
    ("gbk", "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。"),
    ("big5", "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。"),
    ("cp949", "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."),
]


@pytest.mark.parametrize(("encoding", "text"), OLD)
def test_an_old_encoding_is_known_by_its_letters(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)).text == text
    assert decode(b"x = 1\n" * 20_000 + text.encode(encoding)).text.endswith(text)


@pytest.mark.parametrize(
    "declaration",
    [
        "<meta charset='iso-8859-5'>",
        "# -*- coding: iso-8859-5 -*-",
        "<?xml encoding='ISO-8859-5'?>",
    ],
)
def test_a_declared_encoding_is_believed(declaration: str) -> None:
    text = f"{declaration}\nДа"
    assert decode(text.encode("iso-8859-5")).text == text


@pytest.mark.parametrize("name", ["utf-8", "rot13", "hex", "nonesuch", "idna", "unicode_escape"])
def test_a_declaration_that_cannot_be_true_is_not_believed(name: str) -> None:
    text = f"charset={name}\nGrüße"
    assert decode(text.encode("latin-1")).text == text


def test_a_damaged_byte_does_not_spoil_the_rest() -> None:
    decoded = decode(("Grüße aus Köln. " * 50).encode() + b"\xff" + "Schluß".encode())
    assert decoded.encoding == "utf-8, damaged"
    assert decoded.text.count("Köln") == 50
    assert decoded.text.endswith("\ufffdSchluß")


@pytest.mark.parametrize(
    "data",
    [
        b"zebrafish\0\1\2",
        b"zebrafish\0",
        b"zebrafish\0\0\0",
        b"a line\nof text\0and more of it.\n",
        b"\x7fELF\2\1\1" + bytes(9),
        b"key\0value\0key\0value\0",
        "only UTF-32, without a mark".encode("utf-32-le"),
    ],
)
def test_a_short_file_with_zeros_is_no_text(data: bytes) -> None:
    with pytest.raises(NotText):
        decode(data)


@pytest.mark.parametrize(
    "text", ["a", "ab\n", "x = 1", "日本 語", "中 文 字", "Привет, мир", "한국어 말"]
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32"])
def test_short_utf16_and_marked_utf32_stay_text(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_text_and_zeros_far_down_is_still_text() -> None:
    assert decode(b"line\n" * 4000 + b"\0\0\nmore").text.endswith("\ufffd\ufffd\nmore")


@pytest.mark.parametrize(
    "data",
    [
        b"caf\xe9 zebra " * 1000 + b"\0after",
        "Grüße ".encode() * 2000 + b"\xff\0after",
        b"charset=latin-1 \xe9" + b" " * 9000 + b"\0after",
        codecs.BOM_UTF16_LE + "one\0after".encode("utf-16-le"),
        codecs.BOM_UTF8 + b"one\0after",
    ],
)
def test_no_text_has_zeros_in_it_whatever_it_is_written_in(data: bytes) -> None:
    assert decode(data).text.endswith("\ufffdafter")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_was_written_for_a_terminal_is_text(encoding: str) -> None:
    logged = "\x1b]0;build\x07\x1b[31mFAILED\x1b[0m\x07\x07 |\b/\b-\f\n"
    assert decode(logged.encode(encoding)).text == logged
    with pytest.raises(NotText):
        decode(b"\0" + logged.encode() + b"\0")


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
def test_a_mark_does_not_make_bytes_a_text(mark: bytes) -> None:
    with pytest.raises(NotText):
        decode(mark + bytes(range(128)) * 50)
    coloured = "\x1b[32mok\x1b[0m\r\n" * 20
    assert decode(codecs.BOM_UTF16_LE + coloured.encode("utf-16-le")).text == coloured


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200))
def test_whatever_is_utf8_is_read_as_it_is(text: str) -> None:
    decoded = decode(text.encode())
    assert decoded.text == text.removeprefix("\ufeff")
    assert decoded.encoding == "utf-8"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_are_said_to_be_none(data: bytes) -> None:
    try:
        text = decode(data).text
    except NotText:
        return
    assert "\0" not in text
    text.encode()
