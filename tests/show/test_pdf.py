"""Reports as PDF: pages are turned, columns fit, the same report gives the same bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from pinloop.show.plots import pdf
from pinloop.tables.report import Cell, KeyValues, Notes, Report, Table, block_lines


def report(rows: int) -> Report:
    """A report with a table of so many rows, marks, long texts, and signs that TeX would read."""
    cells: list[list[str | Cell]] = [
        [f"row_{k}", f"{k}.5", Cell("bad", "bad"), "words " * 30] for k in range(rows)
    ]
    headings = ["<name", "length | all [mm]", "<state", "<remarks"]
    blocks = (
        KeyValues.of("Facts", [("price", "5 $ to 6 $, at $x^2$"), ("long", "words " * 60)]),
        Table.of("Rows", headings, cells),
        Notes.of("Notes", ["one", "words " * 80], "caution"),
    )
    return Report.of(
        "A title that is so long that it does not fit on one line of A4", blocks, "End."
    )


def pages_of(path: Path) -> int:
    return len(re.findall(rb"/Type /Page\b(?!s)", path.read_bytes()))


def test_pages_are_turned(tmp_path: Path) -> None:
    counts = [pages_of(report(n).to_pdf(tmp_path / f"{n}.pdf")) for n in (2, 30, 120)]
    assert counts[0] == 1 < counts[1] < counts[2]


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (report(9).to_pdf(tmp_path / f"{k}.pdf").read_bytes() for k in "ab")
    assert first == second and b"CreationDate" not in first


def test_lines_fit_on_the_page() -> None:
    """Tables are cut, long texts go on below themselves, and no word is lost."""
    width = pdf.columns_of(pdf._TEXT)
    wide = [f"column {k} of many [mm]" for k in range(14)]
    table = Table.of("Wide", ["<name", *wide], [["a name", *(f"{k}.25" for k in range(14))]])
    for block in (*report(3).blocks, table):
        lines = [part for line in block_lines(block, width) for part in pdf.fold(line)]
        texts = ["".join(text for text, _ in line) for line in lines]
        assert max(map(len, map(str.rstrip, texts))) <= width
        assert sum(text.count("words") for text in texts) in (0, 60, 80, 3 * 30)
    rows = [text for text in texts if text.startswith("a name")]
    assert len(rows) > 1 and " ".join(rows).count(".25") == 14


def test_headings_are_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page is turned within a table, which is cut in two here."""
    written: list[tuple[int, str]] = []
    pages: list[object] = []

    def record(page: object, place: object, text: str, *_: object) -> None:
        pages.append(page)
        written.append((len({*map(id, pages)}), text))

    monkeypatch.setattr(pdf, "put", record)
    report(120).to_pdf(tmp_path / "a.pdf")
    heads = [page for page, text in written if text.startswith("name")]
    rows = {page for page, text in written if text.startswith("row_")}
    assert {*heads} == rows and len(heads) == len(rows) + 1 > 2


def test_letters_are_as_wide_as_they_are_taken_for() -> None:
    font = FontProperties(family="DejaVu Sans Mono", size=100.0)
    width = TextToPath().get_text_width_height_descent("m" * 100, font, ismath=False)[0]
    assert width == pytest.approx(1e4 * pdf._LETTER, rel=2e-3)
