"""Reports as PDF: pages are turned, columns fit, the same report gives the same bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from pinloop.show.plots import pdf
from pinloop.tables.report import Cell, KeyValues, Notes, Report, Table


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


def test_columns_fit_on_the_page() -> None:
    """Letters become smaller and texts are wrapped, words are not lost."""
    room, wide = 495.0, [f"column {k} of many [mm]" for k in range(14)]
    table = Table.of("Wide", ["<name", *wide], [["a name", *(f"{k}.25" for k in range(14))]])
    for each in (report(3).blocks[1], table):
        assert isinstance(each, Table)
        layouts = [*pdf._parts(each, room)]
        assert (len(layouts) > 1) == (each is table)
        for layout in layouts:
            ends = [*layout.spans()]
            assert ends[-1][1] <= room and pdf._LEAST <= layout.size <= pdf._TEXT
            assert all(a < b for a, b in ends)
            assert layout.table.columns[0] == each.columns[0]
        shown = [column for layout in layouts for column in layout.table.columns[1:]]
        assert shown == [*each.columns[1:]]
    lines = pdf._wrapped("some words that are wrapped", 60.0, 8.0)
    assert " ".join(lines) == "some words that are wrapped" and len(lines) > 1
    assert all(pdf._width(line, 8.0) <= 60.0 for line in lines)
