"""A file becomes text, or says in one sentence why not."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.chunking import guess_format, split
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import InvalidInput
from byheart.workspace import MAX_FILE_BYTES, FileText, NotText, Unreadable, read_file
from byheart.workspace.formats.word_files import read_word_file


def read(root: Path, put, name: str, content: str | bytes) -> FileText:
    put(name, content)
    return read_file(root, name)


def reason(root: Path, put, name: str, content: str | bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        read(root, put, name, content)
    return caught.value.message


def text_or_reason(root: Path, path: str) -> str:
    try:
        return read_file(root, path).text
    except Unreadable as error:
        return error.message


def headings(file: FileText) -> list[str]:
    known = file.format or guess_format(file.text, file.seen.path)
    chunks = split(file.text, format=known, tokens=EstimatedTokens(), target_tokens=400)
    assert "".join(chunk.content for chunk in chunks) == file.text
    return [" > ".join(heading.title for heading in chunk.headings) for chunk in chunks]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.md", "markdown"),
        ("a.txt", "text"),
        ("a.py", "code:python"),
        ("a.json", "code:json"),
        ("a.yaml", "code:yaml"),
        ("a.toml", "code:toml"),
        ("a.rst", "rst"),
        ("Makefile", "code:make"),
    ],
)
def test_text_is_read_as_it_is(tmp_path: Path, put, name: str, format: str) -> None:
    content = "# one\r\n\ttwo  \n\n\x0cthree\rfour \u2028 ünï\n"
    file = read(tmp_path, put, name, content)
    assert (file.text, file.encoding, file.lines_match) == (content, "utf-8", True)
    assert (file.format or guess_format(file.text, name)) == format
    assert file.file_hash == hashlib.sha256(content.encode()).digest()


def test_what_was_read_comes_with_the_file_as_it_was_opened(tmp_path: Path, put) -> None:
    file = put("sub/a.md", "text")
    seen = read_file(tmp_path, "sub/a.md").seen
    details = file.stat()
    assert (seen.path, seen.size, seen.mtime_ns) == ("sub/a.md", 4, details.st_mtime_ns)
    assert (seen.inode, seen.device) == (details.st_ino, details.st_dev)


def test_an_empty_file_is_an_empty_text(tmp_path: Path, put) -> None:
    assert read(tmp_path, put, "a.md", b"").text == ""


def test_links_are_refused_at_every_step(tmp_path: Path, put) -> None:
    put("real/a.md")
    (tmp_path / "link.md").symlink_to(tmp_path / "real/a.md")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    for path in ("link.md", "folder/a.md"):
        with pytest.raises(Unreadable, match="link"):
            read_file(tmp_path, path)
    for path in ("../x", "real/../real/a.md", "/etc/hosts", "", "a\0b"):
        with pytest.raises(InvalidInput):
            read_file(tmp_path, path)


def test_a_folder_swapped_for_a_link_while_it_is_read_leads_nowhere(tmp_path: Path, put) -> None:
    put("inside/a.md", "inside")
    outside = put("elsewhere/a.md", "outside").parent
    folder, link = tmp_path / "inside", tmp_path / "inside.link"
    link.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            folder.rename(tmp_path / "kept")
            link.rename(folder)
            folder.rename(link)
            (tmp_path / "kept").rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        texts = {text_or_reason(tmp_path, "inside/a.md") for _ in range(300)}
    finally:
        stop.set()
        swapping.join()
    assert "outside" not in texts


def test_a_pipe_a_folder_and_a_file_that_is_gone_are_named(tmp_path: Path, put) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    for path, message in (
        ("pipe.md", "is not a regular file"),
        ("folder.md", "is not a regular file"),
        ("gone.md", "is no longer there"),
        ("gone/too.md", "is no longer there"),
    ):
        with pytest.raises(Unreadable) as caught:
            read_file(tmp_path, path)
        assert caught.value.message == message


def test_a_file_that_grew_too_large_since_it_was_seen_is_refused(tmp_path: Path, put) -> None:
    assert reason(tmp_path, put, "a.txt", b"x" * (MAX_FILE_BYTES + 1)) == "is larger than 10 MB"


def test_a_file_that_grows_is_read_up_to_where_it_ended(tmp_path: Path, put, monkeypatch) -> None:
    file = put("a.log", "first\n")
    fstat = os.fstat

    def grow(handle: int) -> os.stat_result:
        details = fstat(handle)
        if stat.S_ISREG(details.st_mode):
            with file.open("a") as more:
                more.write("second\n")
        return details

    monkeypatch.setattr(os, "fstat", grow)
    read = read_file(tmp_path, "a.log")
    assert (read.text, read.seen.size) == ("first\n", 6)


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"text and then\x00\x00\x00 zeros",
        bytes(range(256)) * 4,
        b"\x7fELF\x02\x01\x01" + b"\x00" * 100,
        b"\x01\x02\x03\x04" * 50,
        b"\x1f\x8b\x08\x08" + bytes(range(1, 200)),
    ],
)
def test_bytes_that_are_no_text_are_told_apart(tmp_path: Path, put, content: bytes) -> None:
    put("data.unknown", content)
    with pytest.raises(NotText, match="is binary"):
        read_file(tmp_path, "data.unknown")


def test_a_private_key_is_no_text_under_any_name(tmp_path: Path, put) -> None:
    put("notes.txt", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n")
    with pytest.raises(NotText, match="private key"):
        read_file(tmp_path, "notes.txt")
    about = "A key begins with -----BEGIN RSA PRIVATE KEY-----\n"
    assert read(tmp_path, put, "about.txt", about).text == about


ACCOUNT = """{
  "type": "service_account",
  "project_id": "shop",
  "private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n",
  "client_email": "robot@shop.example.org"
}
"""
KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: prod
  cluster:
    server: https://k8s.example.org
users:
- name: anna
  user:
    client-key-data: TUlJRQ==
"""
REGISTRIES = '{"auths": {"registry.example.org": {"auth": "dXNlcjpodW50ZXIy"}}}'


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("shop.json", ACCOUNT, "service account"),
        ("admin.conf", KUBECONFIG, "kubeconfig"),
        ("cluster.yaml", f"# Of the cluster\n{KUBECONFIG}", "kubeconfig"),
        ("config.json", REGISTRIES, "container registries"),
    ],
)
def test_a_file_of_credentials_is_no_text_under_any_name(
    tmp_path: Path, put, name: str, text: str, reason: str
) -> None:
    put(name, text)
    with pytest.raises(NotText, match=reason):
        read_file(tmp_path, name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", f"The account looks like this:\n\n```json\n{ACCOUNT}```\n"),
        ("notes2.md", f"The file looks like this:\n\n{KUBECONFIG}"),
        ("cluster.yaml", KUBECONFIG.replace("    client-key-data: TUlJRQ==\n", "")),
        ("deployment.yaml", "apiVersion: v1\nkind: ConfigMap\nusers: 3\nclusters: 2\ntoken: x\n"),
        ("package.json", '{"auths": {"mode": "none"}}'),
        ("types.json", '{"type": "service_account", "private_key": "see the vault"}'),
    ],
)
def test_a_file_that_only_looks_like_credentials_is_text(
    tmp_path: Path, put, name: str, text: str
) -> None:
    assert read(tmp_path, put, name, text).text == text


PAGE = """<!DOCTYPE html>
<html><head><title>Set up &amp; run</title>
<style>h1 { color: red }</style><script>if (a<b) { write("<h1>no</h1>") }</script></head>
<body data-x="a > b">
<h1>Set up<a href="#x">¶</a></h1>
<p>Install <b>it</b>, 3 &lt; 4.</p>
<h2>From
 source</h2>
<pre># build it
make all</pre>
<ul><li>one</li>
<li>two</li></ul>
<table><tr><th>name</th><th>size</th></tr>
<tr><td>a</td><td>1</td></tr></table>
<p># no heading</p>
</body></html>
"""


def test_a_web_page_is_its_text_on_the_lines_it_stood_on(tmp_path: Path, put) -> None:
    file = read(tmp_path, put, "a.html", PAGE)
    lines = file.text.split("\n")
    assert (file.title, file.lines_match) == ("Set up & run", True)
    assert len(lines) == len(PAGE.split("\n"))
    assert lines[4:16] == [
        "# Set up",
        "Install it, 3 < 4.",
        "## From source",
        "",
        "    # build it",
        "    make all",
        "- one",
        "- two",
        "name | size",
        "a | 1",
        "\\# no heading",
        "",
    ]
    assert headings(file) == ["Set up", "Set up > From source"]


def test_a_page_on_one_line_gets_lines_of_its_own(tmp_path: Path, put) -> None:
    file = read(tmp_path, put, "a.htm", "<h1>A</h1><p>one</p><p>two<h2>B</h2><li>x<li>y<br>z")
    assert file.text == "# A\n\none\n\ntwo\n\n## B\n\n- x\n- y\n\nz\n"
    assert not file.lines_match
    assert headings(file) == ["A", "A > B"]


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 10_000,
        "<" * 50_000,
        "<a href=" * 10_000,
        '<a title="' * 10_000,
        "<!--" * 10_000,
        "<script>" * 10_000,
        "&#" + "9" * 10_000 + ";",
        "&" * 50_000,
        "</" * 20_000,
        "<p>x" * 5_000,
        "\r" * 1000 + "<h1",
    ],
)
def test_a_page_that_is_not_closed_is_read_to_its_end(tmp_path: Path, put, page: str) -> None:
    file = read(tmp_path, put, "a.html", page)
    assert file.lines_match is (file.text.count("\n") == page.replace("\r", "\n").count("\n"))


def test_a_notebook_is_its_cells(tmp_path: Path, put) -> None:
    notebook = {
        "metadata": {"language_info": {"name": "julia"}, "title": "My study"},
        "cells": [
            {"cell_type": "markdown", "source": ["# Study\n", "\n", "Some text \ud800."]},
            {"cell_type": "code", "source": "x = 1\n", "outputs": [{"text": "printed"}]},
            {"cell_type": "code", "source": "s = '''\n```\n'''"},
            {"cell_type": "code", "source": []},
            {"cell_type": "markdown", "source": "## Result"},
            "nonsense",
        ],
    }
    file = read(tmp_path, put, "a.ipynb", json.dumps(notebook))
    assert file.text == (
        "# Study\n\nSome text \ufffd.\n\n```julia\nx = 1\n```\n\n"
        "````julia\ns = '''\n```\n'''\n````\n\n## Result\n"
    )
    assert (file.title, file.format, file.lines_match) == ("My study", "markdown", False)
    assert headings(file) == ["Study", "Study > Result"]


def test_a_notebook_of_version_three_has_its_cells_on_worksheets(tmp_path: Path, put) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old"]},
        {"cell_type": "code", "input": ["y = 2"]},
    ]
    file = read(tmp_path, put, "a.ipynb", json.dumps({"worksheets": [{"cells": cells}]}))
    assert file.text == "## Old\n\n```python\ny = 2\n```\n"


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"cells": 1}', "[" * 100_000, "9" * 5000])
def test_what_is_no_notebook_is_named(tmp_path: Path, put, content: str) -> None:
    assert reason(tmp_path, put, "a.ipynb", content).startswith("is not a notebook")


def test_a_table_stays_as_it_is_and_its_columns_become_the_title(tmp_path: Path, put) -> None:
    content = "name;born;city\r\nAda;1815;London\r\n"
    file = read(tmp_path, put, "people.csv", content)
    assert (file.text, file.title) == (content, "people.csv: name, born, city")
    assert file.lines_match
    assert read(tmp_path, put, "a.tsv", "x, y\tz\n1\t2\n").title == "a.tsv: x, y, z"


@pytest.mark.parametrize("content", ["1,2,3\n4,5,6\n", "", "\n\n", "a,a\n", '"a,b\n', "one\ntwo\n"])
def test_a_table_without_names_has_no_title(tmp_path: Path, put, content: str) -> None:
    file = read(tmp_path, put, "a.csv", content)
    assert (file.text, file.title) == (content, None)


def test_json_on_one_line_is_cut_all_the_same(tmp_path: Path, put) -> None:
    content = json.dumps([{"id": number, "name": f"item {number}"} for number in range(3000)])
    assert len(headings(read(tmp_path, put, "a.json", content))) > 10


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word_file(body: str, *, packing: int = zipfile.ZIP_DEFLATED, **others: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as archive:
        document = f"<?xml version='1.0'?><w:document {W}><w:body>{body}</w:body></w:document>"
        archive.writestr("word/document.xml", document)
        for name, text in others.items():
            archive.writestr(name.replace("__", "/") + ".xml", text)
    return packed.getvalue()


def paragraph(text: str, style: str = "", numbered: bool = False) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' * bool(style) + "<w:numPr/>" * numbered
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_a_word_document_is_its_paragraphs_headings_lists_and_tables(tmp_path: Path, put) -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="My style"/>'
        '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style></w:styles>'
    )
    core = (
        '<cp:coreProperties xmlns:cp="x" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The plan</dc:title></cp:coreProperties>"
    )
    cells = "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in ("a", "b"))
    body = (
        paragraph("Plan", "berschrift1")
        + paragraph("First &amp; foremost.")
        + paragraph("Detail", "Own")
        + paragraph("one", numbered=True)
        + "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        + "<w:r><w:t># kept</w:t></w:r></w:p>"
        + f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
    )
    file = read(tmp_path, put, "a.docx", word_file(body, word__styles=styles, docProps__core=core))
    assert file.text == (
        "# Plan\n\nFirst & foremost.\n\n## Detail\n\n- one\n\n\\# kept\n\na | b\na | b\n"
    )
    assert (file.title, file.encoding, file.lines_match) == ("The plan", None, False)
    assert headings(file) == ["Plan", "Plan > Detail"]


def test_a_word_document_that_would_burst_is_refused(tmp_path: Path, put) -> None:
    bomb = word_file("<w:p>" + " " * 51_000_000 + "</w:p>")
    assert len(bomb) < 1_000_000
    assert "unpacks to more than 50 MB" in reason(tmp_path, put, "a.docx", bomb)
    laughs = io.BytesIO()
    with zipfile.ZipFile(laughs, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    assert "defines entities" in reason(tmp_path, put, "b.docx", laughs.getvalue())


def test_a_damaged_word_document_is_named(tmp_path: Path, put) -> None:
    whole = word_file(paragraph("text"))
    assert "damaged" in reason(tmp_path, put, "a.docx", whole[:-40])
    assert "damaged" in reason(tmp_path, put, "b.docx", word_file("<w:p>"))
    assert "damaged" in reason(tmp_path, put, "c.docx", b"not a zip")
    locked = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
    assert "password" in reason(tmp_path, put, "e.docx", locked)
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    assert "not a Word document" in reason(tmp_path, put, "d.docx", empty.getvalue())


def test_a_word_document_that_lies_about_itself_is_named(tmp_path: Path, put) -> None:
    for encoding in ("klingon", "shift_jis"):
        odd = io.BytesIO()
        with zipfile.ZipFile(odd, "w") as archive:
            declared = f"<?xml version='1.0' encoding='{encoding}'?><x/>"
            archive.writestr("word/document.xml", declared)
        assert "damaged" in reason(tmp_path, put, "a.docx", odd.getvalue())
    styles = (
        f'<w:styles {W}><w:style w:styleId="a"><w:outlineLvl w:val="{"1" * 5000}"/></w:style>'
        "</w:styles>"
    )
    body = word_file(paragraph("text", "a"), word__styles=styles)
    assert read(tmp_path, put, "b.docx", body).text == "text\n"


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_whatever_is_damaged_in_a_word_document_it_is_read_or_named(
    packing: int, data: st.DataObject
) -> None:
    damaged = bytearray(word_file(paragraph("text") * 5, packing=packing))
    places = st.integers(0, len(damaged) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    named = None
    try:
        read_word_file(bytes(damaged))
    except Unreadable as error:
        named = error
    assert named is None or ("Word document" in named.message and not named.for_now)


def pdf_file(*pages: str) -> bytes:
    """Write a PDF by hand: a page for each text."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        shown = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 72 700 Td {shown} ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, places = "%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    )
    return out.encode("latin-1")


def test_a_pdf_is_its_pages_each_under_its_number(tmp_path: Path, put) -> None:
    pytest.importorskip("pypdf")
    file = read(tmp_path, put, "a.pdf", pdf_file("Hello there\n# no heading", "", "The end"))
    assert file.text == "# Page 1\n\nHello there\n\\# no heading\n\n# Page 3\n\nThe end\n"
    assert (file.format, file.encoding, file.lines_match) == ("markdown", None, False)
    assert headings(file) == ["Page 1", "Page 3"]


def test_a_pdf_without_text_or_damaged_is_named(tmp_path: Path, put, capfd) -> None:
    pytest.importorskip("pypdf")
    assert "without text" in reason(tmp_path, put, "a.pdf", pdf_file(""))
    whole = pdf_file("Hello")
    for name, content in {"b.pdf": b"", "c.pdf": b"%PDF-1.4\n", "d.pdf": b"no pdf at all"}.items():
        assert "damaged PDF" in reason(tmp_path, put, name, content)
    for cut in range(0, len(whole), 97):
        put("e.pdf", whole[:cut] + b"\xff" + whole[cut + 1 :])
        assert re.search(r"Page 1|is a (?:damaged )?PDF", text_or_reason(tmp_path, "e.pdf"))
    assert capfd.readouterr() == ("", "")


def test_a_pdf_without_the_extra_says_how_to_get_it(tmp_path: Path, put, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    put("a.pdf", pdf_file("Hello"))
    with pytest.raises(Unreadable, match="not installed") as caught:
        read_file(tmp_path, "a.pdf")
    assert caught.value.hint == 'pip install "byheart[documents]"'
    assert caught.value.for_now


def test_what_stands_in_the_way_is_told_from_what_a_file_says(tmp_path: Path, put) -> None:
    (tmp_path / "folder").mkdir()
    for path in ("gone.md", "folder", "x" * 300):
        with pytest.raises(Unreadable) as caught:
            read_file(tmp_path, path)
        assert caught.value.for_now, path
    for name, content in {"a.ipynb": "{", "b.docx": b"no zip", "c.md": b"\0\1\2"}.items():
        with pytest.raises(Unreadable) as caught:
            read(tmp_path, put, name, content)
        assert not caught.value.for_now, name
