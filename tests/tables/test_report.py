"""Reports: aligned text, terminals of any width, notebooks; nothing is lost or taken for markup."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from pinloop.errors import printable
from pinloop.tables.number_format import numbers
from pinloop.tables.report import Block, Cell, Column, KeyValues, Notes, Report, Table

COLUMNS = (
    Column("joint", right=False),
    Column("start", "deg"),
    Column("reaction", "ms", "time"),
    Column("total", "ms", "time"),
    Column("slips"),
    Column("state", right=False),
)


def grid(*names: str, title: str = "Joints") -> Table:
    rows = tuple(
        (Cell(n), Cell(f"{k}.5"), Cell(f"1{k}"), Cell(f"2{k}"), Cell(f"3{k}"), Cell("held"))
        for k, n in enumerate(names)
    )
    return Table(title, COLUMNS, rows)


def report(*blocks: KeyValues | Table | Notes, closing: str = "") -> Report:
    return Report(Cell("title", "good"), blocks, closing)


def shown(thing: Report, width: int, *, colours: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        legacy_windows=False,
    )
    console.print(thing)
    return stream.getvalue()


# -- from texts -----------------------------------------------------------------------------


def test_headings_say_unit_side_and_what_stands_over_them() -> None:
    headings = ("<joint", "start [deg]", "time | reaction [ms]", "time | total [ms]", "slips")
    row = ("a", "0.5", "10", "20", Cell("30", "bad"))
    made = Table.of("Joints", (*headings, "<state"), [(*row, "held")])
    assert made.columns == COLUMNS
    assert made.rows == ((*map(Cell, row[:4]), Cell("30", "bad"), Cell("held")),)


def test_texts_lose_their_control_characters() -> None:
    facts = KeyValues.of("Facts", [("a\rb", "c\x1bd"), ("e", Cell("f", "good"))])
    assert facts.entries == (("a\\rb", Cell("c\\x1bd")), ("e", Cell("f", "good")))
    assert Notes.of("Notes", ["a\nb"], "caution").items == ("a\\nb",)
    assert Report.of("a\nb", []).title == Cell("a\\nb")
    assert Report.of(Cell("a\nb", "bad"), []).title == Cell("a\\nb", "bad")


def test_blocks_that_say_nothing_are_left_out() -> None:
    empty: list[Block] = [KeyValues("Facts", ()), Table("Joints", COLUMNS, ()), Notes("Notes", ())]
    full: list[Block] = [KeyValues.of("Facts", [("a", "b")]), grid("a"), Notes("Notes", ("a",))]
    assert Report.of("title", [*empty[:2], *full, *empty]).blocks == tuple(full)


def test_numbers_beside_each_other_have_the_same_decimals() -> None:
    assert numbers([12.3456, -0.001, None, float("nan")]) == ["12.35", "0.00", "-", "-"]
    assert numbers([12345.6], least=1) == ["12345.6"]
    assert numbers([0.0012345]) == ["0.001"]
    assert numbers([0.0012345], most=6) == ["0.001234"]


# -- text -----------------------------------------------------------------------------------


def test_a_table_as_text() -> None:
    assert str(report(grid("a", "longer"))) == (
        "title\n"
        "\n"
        "Joints\n"
        "          start     time [ms]\n"
        "  joint   [deg]  reaction  total  slips  state\n"
        "  a         0.5        10     20     30  held\n"
        "  longer    1.5        11     21     31  held"
    )


def test_headings_of_one_line_where_nothing_stands_over_them() -> None:
    block = Table("Energy", (Column("", right=False), Column("[J]")), ((Cell("in"), Cell("12.5")),))
    assert str(report(block)).splitlines()[2:] == ["Energy", "       [J]", "  in  12.5"]


def test_a_wide_common_heading_makes_room_for_itself() -> None:
    both = (Column("a", "m", "a long heading"), Column("b", "m", "a long heading"))
    rows = ((Cell("r"), Cell("1"), Cell("2")),)
    block = Table("x", (Column("n", right=False), *both), rows)
    over, under, row = str(report(block)).splitlines()[3:]
    assert over.strip() == "a long heading [m]"
    assert len(over) == len(under) == len(row)


def test_facts_are_wrapped_beside_their_names() -> None:
    text = report(KeyValues("Stop", (("a", Cell("one two three four")), ("bcd", Cell("x"))))).text(
        23
    )
    assert text.splitlines()[2:] == ["Stop", "  a    one two three", "       four", "  bcd  x"]


def test_notes_are_wrapped_and_hyphens_and_units_are_not_torn() -> None:
    item = "the file six-axis-arm.yaml says 12\N{NO-BREAK SPACE}N\N{NO-BREAK SPACE}m of it"
    text = report(Notes("Notes", (item, "short"))).text(26)
    assert text.splitlines()[3:] == [
        "  - the file",
        "    six-axis-arm.yaml says",
        "    12 N m of it",
        "  - short",
    ]


def test_the_closing_sentence_stands_below() -> None:
    assert str(report(Notes("N", ("x",)), closing="the end")).endswith("  - x\n\nthe end")


@pytest.mark.parametrize("width", [18, 24, 30, 46])
def test_narrow_text_cuts_a_table_and_repeats_the_names(width: int) -> None:
    block = grid("alpha", "beta")
    lines = report(block).text(width).splitlines()[3:]
    assert max(map(len, lines)) <= width
    for row in block.rows:
        own = [line.split() for line in lines if line.split()[:1] == [row[0].text]]
        assert [word for words in own for word in words[1:]] == [cell.text for cell in row[1:]]
    assert len([line for line in lines if line.startswith("  joint")]) == lines.count("") + 1


def test_names_too_long_for_a_terminal_go_on_below() -> None:
    name = "abcdefghijklmnopqrstuvwxyz"
    lines = report(grid(name)).text(30).splitlines()[3:]
    assert max(map(len, lines)) <= 30
    pieces = [line.split()[0] for line in lines if line.split() and line.split()[0] in name]
    assert "".join(pieces) == name * (lines.count("") + 1)


def test_wide_letters_keep_columns_in_line() -> None:
    lines = str(report(grid("関節", "abcd"))).splitlines()[-2:]
    # Two letters of East Asian width take the room of four.
    assert [line.index("held") for line in lines] == [40 - 2, 40]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("a\nb\x1b[31mc") == "a\\nb\\x1b[31mc"


# -- terminal -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [30, 60, 200])
def test_frames_fit_and_are_alike(width: int) -> None:
    block = grid("alpha", "beta")
    lines = shown(report(KeyValues("Stop", (("a", Cell("b")),)), block), width).splitlines()
    frame = 4 + len("joint  start  reaction  total  slips  state")
    assert lines[0] == "title"
    # No wider than what is in them: the longest row, two blanks and a line on both sides.
    assert {len(line) for line in lines[1:]} == {frame if width > frame else len(lines[1])}
    assert len(lines[1]) <= width
    assert lines[1].startswith("╭─ Stop ─") and lines[-1].startswith("╰")
    text = " ".join(lines)
    assert all(cell.text in text for row in block.rows for cell in row)


def test_colours_tell_good_from_bad() -> None:
    marked = Table("G", (Column("n", right=False), Column("x")), ((Cell("r"), Cell("9", "bad")),))
    text = shown(report(marked, Notes("W", ("careful",), "caution")), 80, colours=True)
    assert "\x1b[1;32mtitle" in text and "\x1b[1;31m9" in text and "\x1b[33mcareful" in text


def test_names_are_not_taken_for_markup() -> None:
    assert "[red]x[/red]" in shown(report(grid("[red]x[/red]", title="[bold]T[/bold]")), 80)
    assert "[bold]T[/bold]" in shown(report(grid("a", title="[bold]T[/bold]")), 80)


# -- notebook -------------------------------------------------------------------------------


class Read(HTMLParser):
    """Cells of the tables of a page, and whether its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.spans: list[int] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.spans.append(int(dict(attrs).get("colspan") or 1))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_notebook_shows_the_same_table() -> None:
    block = grid("a<b>&", "c")
    page = report(block, Notes("N", ("x < y",)), closing="end & out")._repr_html_()
    read = Read()
    read.feed(page)
    assert read.open == []
    over, under, *rows = read.rows
    assert [text.strip() for text in over] == ["joint", "start", "time [ms]", "slips", "state"]
    assert read.spans[:5] == [1, 1, 2, 1, 1]
    assert under == ["reaction", "total"]
    assert rows == [[cell.text for cell in row] for row in block.rows]
    assert "x &lt; y" in page and "end &amp; out" in page
    assert '<h3 class="good">title</h3>' in page
    # Rules that a notebook takes from it hold in it alone.
    rules = page[page.index("<style>") + 7 : page.index("</style>")]
    selectors = re.findall(r"([^{}]+)\{", rules)
    assert selectors and all(
        part.strip().startswith(".pinloop-report ") for s in selectors for part in s.split(",")
    )


def test_no_break_spaces_stay_what_they_are() -> None:
    notes = Notes("N", ("12\N{NO-BREAK SPACE}N\N{NO-BREAK SPACE}m \x1b",))
    page = report(notes)._repr_html_()
    assert "<li>12\N{NO-BREAK SPACE}N\N{NO-BREAK SPACE}m \\x1b</li>" in page


def test_a_report_as_csv(tmp_path: Path) -> None:
    block = grid("a,b", "c")
    facts = KeyValues("Stop", (("outcome", Cell("at rest", "good")),))
    path = report(facts, block, Notes("N", ("x",))).to_csv(tmp_path / "table.csv")
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == ["table", "row", "column", "unit", "value"]
    assert rows[0] == ["Stop", "outcome", "", "", "at rest"] and rows[-1] == ["N", "", "", "", "x"]
    assert len(rows) == 2 + 2 * (len(COLUMNS) - 1)
    first = {(column, unit): value for _, row, column, unit, value in rows if row == "a,b"}
    assert first["start", "deg"] == block.rows[0][1].text
    assert first["time total", "ms"] == block.rows[0][3].text


def test_numbers_stay_with_their_units() -> None:
    """Wherever a line ends, on a terminal and on paper."""
    words = "its least is 84.06 % at 2.5 m/s after 372 ms with 12 N m and 3 mm"
    report = Report.of("t", [Notes.of("n", [words])])
    for width in range(24, 70):
        text = report.text(width)
        assert "\N{NO-BREAK SPACE}" not in text
        for quantity in ("84.06 %", "2.5 m/s", "372 ms", "12 N m", "3 mm"):
            assert quantity in text, width
