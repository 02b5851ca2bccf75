"""Correct titles from BibTeX, tables and lines: every form gives the same titles, every fault a clear message."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from fairtune.core.errors import DataError
from fairtune.tasks.titles.files import bibtex_fields, plain_text, read_titles

BIBTEX = r"""
@Article{one,
  author = {G{\"o}del, K. and {The {Ice} Group}},
  title  = {The {Flow} of {\em Frozen} Rivers
            in {S{\o}rlandet}},
  journal = jcs, year = 1998,
}
@inproceedings(two, title = "A {"}quoted{"} Name: Caf{\'e} {\&} \v{S}koda -- 100\% of $O(n^2)$",
  booktitle={Nothing}, TITLEaddon = {no})
@book{three, TITLE = "First and second part"}
@misc{four, author = {Nobody}}
@book{joined, title = "Half of " # series # { a title}}
@misc{ five(2001) , title = {}}
@article{six(b),title={Na{\"\i}ve \textbf{Bold} \alpha{}-Decay},}
"""
TITLES = [
    "The Flow of Frozen Rivers in Sørlandet",
    'A "quoted" Name: Café & Škoda – 100% of O(n^2)',
    "First and second part",
    "Naïve Bold α-Decay",
]


def test_bibtex_titles_are_read_as_they_print(tmp_path: Path) -> None:
    (tmp_path / "a.bib").write_text(BIBTEX, encoding="utf-8")
    assert read_titles([tmp_path / "a.bib"]) == TITLES
    assert read_titles([tmp_path / "a.bib"], "booktitle") == ["Nothing"]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"Schr{\"o}dinger", "Schrödinger"),
        (r"Schr\"{o}dinger", "Schrödinger"),
        (r"Schr\"odinger", "Schrödinger"),
        (r"Fran{\c c}ois and Fran\c{c}ois", "François and François"),
        (r"{\L}ukasz, {\AA}se, Stra{\ss}e, \O re", "Łukasz, Åse, Straße, Øre"),
        (r"P\'olya {P}\'{o}lya", "Pólya Pólya"),
        (r"\emph{In vivo} {\it imaging}", "In vivo imaging"),
        (r"``Quotes'' --- and~ties", "“Quotes” — and ties"),
        (r"C\# and C\_x and 5\,m \{set\}", "C# and C_x and 5 m {set}"),
        (r"H$_2$O in $\alpha$-phase", "H_2O in α-phase"),
        (r"{D}on't {T}rust {\LaTeX}", "Don't Trust"),
        ("plain", "plain"),
    ],
)
def test_latex_as_it_would_be_printed(latex: str, text: str) -> None:
    assert plain_text(latex) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n@article{a, title = {Never {closed}", r"here: line 2: the '{' that opens here is never closed"),
        ('@article{a, title = "Never closed}', "here: line 1: the '\"' that opens here is never closed"),
    ],
)
def test_what_does_not_end_is_reported(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(bibtex_fields(text, "title", "here"))


def write(file: Path, titles: list[str | None]) -> Path:
    """The titles in the format that the file's name says."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    if plain.suffix == ".parquet":
        parquet.write_table(pa.table({"id": range(len(titles)), "title": titles}), plain)
    elif plain.suffix == ".jsonl":
        plain.write_text("".join(json.dumps({"id": 1, "title": title}) + "\n" for title in titles), encoding="utf-8")
    elif plain.suffix == ".txt":
        plain.write_text("".join(f"{title or ''}\r\n" for title in titles), encoding="utf-8-sig")
    elif plain.suffix == ".bib":
        plain.write_text("".join(f"@a{{b, title = {{{title or ''}}}}}\n" for title in titles), encoding="utf-8-sig")
    else:
        mark = "\t" if plain.suffix == ".tsv" else ","
        rows = [f"id{mark}title", *(f'1{mark}"{title or ""}"' for title in titles)]
        plain.write_text("\n".join(rows) + "\n", encoding="utf-8-sig")
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(plain.read_bytes()))
    return file


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", ["bib", "csv", "tsv", "jsonl", "parquet", "txt"])
def test_every_format_gives_the_same_titles(tmp_path: Path, kind: str, packed: str) -> None:
    file = write(tmp_path / f"titles.{kind}{packed}", ["Flüsse, Seen und Meere", None, "", "Second Title", " "])
    assert read_titles([file]) == ["Flüsse, Seen und Meere", "Second Title"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "a.txt: there are no titles in it"),
        ("a.txt", b"\n  \n", "a.txt: there are no titles in it"),
        ("a.bib", b"@misc{x, author = {Nobody}}", "a.bib: there are no titles in it"),
        ("a.csv", b"", "a.csv: the file is empty"),
        ("a.csv", b"title\n", "a.csv: there are no titles in it"),
        ("a.csv", b"Title,x\na,b\n", r"a.csv: no column 'title'; columns: Title, x.*Did you mean 'Title'"),
        ("a.jsonl", b'{"name": "x"}', "a.jsonl: line 1: no column 'title'; columns: name"),
        ("a.jsonl", b'{"title": 5}', "a.jsonl: row 1: column 'title' holds 5, not a text"),
        ("a.bib", "@a{b,\n title={Fluß}}".encode("latin-1"), r"a.bib: line 2 is not UTF-8"),
        ("a.txt.gz", b"no gzip", "a.txt.gz: the gzip file is damaged"),
        ("a.bib.gz", gzip.compress(b"@a{b, title={x y}}" * 50, mtime=0)[:-9], "a.bib.gz: the gzip file is damaged"),
        ("a.doc", b"x", r"a.doc: unknown format '.doc'; allowed: .bib, .bibtex, .csv"),
    ],
)
def test_faults_are_reported(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_titles([tmp_path / name])


def test_an_encoding_is_taken_at_its_word(tmp_path: Path) -> None:
    for name, text in (("a.bib", "@a{b, title={Fluß und See}}"), ("a.csv", "title\nFluß und See")):
        (tmp_path / name).write_bytes(text.encode("cp1252"))
        assert read_titles([tmp_path / name], encoding="windows-1252") == ["Fluß und See"]


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "titles.bib", ["x"])
    with pytest.raises(DataError, match=r"titel\.bib: there is no such file\. Did you mean .*titles\.bib"):
        read_titles([tmp_path / "titel.bib"])
    for name in ("folder.bib", "folder.csv"):
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match="that is a folder; give one file"):
            read_titles([tmp_path / name])
