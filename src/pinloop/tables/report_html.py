"""Reports as HTML, for notebooks, as pages and block by block in larger ones; and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .markup import Content, Markup, element, joined
from .page import document, style
from .report import (
    Block,
    Cell,
    Column,
    KeyValues,
    Notes,
    Report,
    Table,
    column_runs,
    heading_over,
    heading_under,
)

__all__ = [
    "block_html",
    "element_of",
    "framed_table",
    "key_values_html",
    "markdown_of",
    "page_of",
    "table_html",
]

_SCOPE = "pinloop-report"


def page_of(report: Report) -> str:
    """A page of its own: needs no other file and no network."""
    body = element("main", *_parts(report, "h1", "h2"))
    return document(report.title.text, style(), body)


def element_of(report: Report) -> str:
    """An element for a notebook; its rules hold in it alone."""
    rules = element("style", style(_SCOPE))
    return element("div", rules, *_parts(report, "h3", "h4"), class_=_SCOPE)


def _parts(report: Report, title: str, heading: str) -> Iterator[Markup]:
    yield element(title, report.title.text, class_=report.title.mark or None)
    for block in report.blocks:
        yield element(heading, block.title)
        yield block_html(block, titled=False)
    if report.closing:
        yield element("p", report.closing)


def block_html(block: Block, *, titled: bool = True) -> Markup:
    """A block as an element.

    Args:
        block: the block.
        titled: whether the title of a table is seen; without it is there for those who cannot see
            the table.
    """
    if isinstance(block, Notes):
        items = (element("li", item, class_=block.mark or None) for item in block.items)
        return element("ul", *items)
    if isinstance(block, KeyValues):
        return key_values_html(block)
    return table_html(block, titled=titled)


def key_values_html(block: KeyValues) -> Markup:
    """Names and what they are, a line each, under a heading that says so."""
    rows = (
        element("tr", element("th", name, scope="row"), _cell(cell)) for name, cell in block.entries
    )
    return framed_table(block.title, "facts", element("tbody", *rows), titled=False)


def table_html(table: Table, *, titled: bool = True) -> Markup:
    """A table with headings over groups of columns; see `block_html`."""
    first, *_ = table.columns
    grouped = any(column.group for column in table.columns)
    rows = 2 if grouped else None
    upper, lower = [element("th", first.heading, scope="col", rowspan=rows)], []
    for run in column_runs(table):
        column = table.columns[run[0]]
        if column.group:
            over = heading_over(table, run)
            upper.append(element("th", over, scope="colgroup", colspan=len(run)))
            lower += [
                element(
                    "th",
                    heading_under(table.columns[k]),
                    scope="col",
                    class_=_side(table.columns[k]),
                )
                for k in run
            ]
        else:
            unit: Content = element("span", f" [{column.unit}]") if column.unit else ""
            heading = joined(column.heading, unit)
            upper.append(element("th", heading, scope="col", rowspan=rows, class_=_side(column)))
    head = element("thead", *(element("tr", *line) for line in (upper, lower) if line))
    body = element("tbody", *(_row(table.columns, row) for row in table.rows))
    return framed_table(table.title, "numbers", head, body, titled=titled)


def framed_table(title: str, kind: str, *content: Markup, titled: bool = True) -> Markup:
    """A table that scrolls by itself where a window is narrower.

    Args:
        title: what it holds.
        kind: its class.
        content: its head and body.
        titled: whether the title is seen.
    """
    caption = element("caption", title, class_=None if titled else "unseen")
    table = element("table", caption, *content, class_=kind)
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=title)


def _row(columns: Sequence[Column], row: Sequence[Cell]) -> Markup:
    first, *others = row
    cells = (_cell(cell, _side(column)) for column, cell in zip(columns[1:], others, strict=True))
    return element("tr", element("th", first.text, scope="row", class_=first.mark or None), *cells)


def _cell(cell: Cell, side: str | None = None) -> Markup:
    return element("td", cell.text, class_=" ".join(filter(None, (side, cell.mark))) or None)


def _side(column: Column) -> str | None:
    return "right" if column.right else None


# -- Markdown -------------------------------------------------------------------------------------


def markdown_of(report: Report) -> str:
    """The report with tables as GitHub reads them; a heading over several columns is in each."""
    parts = [f"# {_safe(report.title.text)}"]
    for block in report.blocks:
        parts += [f"## {_safe(block.title)}", _markdown_block(block)]
    if report.closing:
        parts.append(_safe(report.closing))
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> str:
    if isinstance(block, Notes):
        return "\n".join(f"- {_safe(item)}" for item in block.items)
    if isinstance(block, KeyValues):
        rows = ([label, cell.text] for label, cell in block.entries)
        return _markdown_table([Column("", right=False)] * 2, rows)
    return _markdown_table(block.columns, ([cell.text for cell in row] for row in block.rows))


def _markdown_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    heads = [f"{c.name} [{c.unit}]" if c.unit else c.name for c in columns]
    rule = ["---:" if column.right else ":---" for column in columns]
    lines = [[_safe(head) for head in heads], rule]
    lines += [[_safe(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _safe(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    for sign in "\\`*_|<>#[]":
        text = text.replace(sign, f"\\{sign}")
    return text
