"""A sheet as HTML, for notebooks or as a page with everything in it, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .report import (
    Block,
    Cell,
    Column,
    KeyValues,
    Mark,
    Notes,
    Report,
    Table,
    column_runs,
    heading_over,
    heading_under,
)

__all__ = ["html_of", "markdown_of", "page_of"]

_PAGE = "font-family: system-ui, sans-serif; font-variant-numeric: tabular-nums"
_COLOURS = {"good": "#1a7f37", "bad": "#c0272d", "caution": "#8a5a00"}
_STYLE = """\
body { margin: 2em auto; max-width: 75em; padding: 0 1em; font-family: system-ui, sans-serif; }
table { border-collapse: collapse; }
th, td { border: 1px solid #c8ccd2; padding: 0.2em 0.6em; }
th { background: #f2f4f7; }"""


def html_of(report: Report) -> str:
    """A page of its own: needs no other file and no network."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><title>{escape(report.title.text)}</title>',
            f"<style>\n{_STYLE}\n</style></head>",
            f"<body>\n{page_of(report)}\n</body>",
            "</html>\n",
        ]
    )


def page_of(report: Report) -> str:
    """The HTML of a sheet: an element to be put into a page."""
    parts = [f'<div style="{_PAGE}">', _element("h3", report.title.text, report.title.mark)]
    for block in report.blocks:
        parts += [_element("h4", block.title), _html_block(block)]
    if report.closing:
        parts.append(_element("p", report.closing))
    return "\n".join([*parts, "</div>"])


def _element(tag: str, text: str, mark: Mark = "", side: str = "") -> str:
    styles = [f"text-align: {side}"] if side else []
    styles += [f"color: {_COLOURS[mark]}"] if mark in _COLOURS else []
    style = f' style="{"; ".join(styles)}"' if styles else ""
    return f"<{tag}{style}>{escape(text)}</{tag}>"


def _html_block(block: Block) -> str:
    if isinstance(block, Notes):
        return f"<ul>{''.join(_element('li', item, block.mark) for item in block.items)}</ul>"
    if isinstance(block, KeyValues):
        rows = (
            _element("th", label, side="left") + _element("td", cell.text, cell.mark, "left")
            for label, cell in block.entries
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    return _html_grid(block)


def _html_grid(grid: Table) -> str:
    first, *others = grid.columns
    upper = "<th></th>" + "".join(
        f'<th colspan="{len(run)}" style="text-align: center">{over}</th>'
        for run in column_runs(grid)
        for over in [escape(heading_over(grid, run))]
    )
    lower = _element("th", first.heading, side="left") + "".join(
        _element("th", heading_under(column), side=_side(column)) for column in others
    )
    body = "".join(f"<tr>{_html_row(grid, row)}</tr>" for row in grid.rows)
    return f"<table><thead><tr>{upper}</tr><tr>{lower}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(grid: Table, row: Iterable[Cell]) -> str:
    return "".join(
        _element("td", cell.text, cell.mark, _side(column))
        for column, cell in zip(grid.columns, row, strict=True)
    )


def _side(column: Column) -> str:
    return "right" if column.right else "left"


def markdown_of(report: Report) -> str:
    """The sheet with tables as GitHub reads them; a heading over several columns is in each."""
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
        rows = [[label, cell.text] for label, cell in block.entries]
        return _markdown_table([Column("", right=False)] * 2, ["", ""], rows)
    return _markdown_grid(block)


def _markdown_grid(grid: Table) -> str:
    heads = []
    for column in grid.columns:
        words = " ".join(word for word in (column.group, column.heading) if word)
        heads.append(f"{words} [{column.unit}]" if column.unit else words)
    return _markdown_table(
        list(grid.columns), heads, [[cell.text for cell in row] for row in grid.rows]
    )


def _markdown_table(columns: list[Column], heads: list[str], rows: list[list[str]]) -> str:
    rule = ["---:" if column.right else ":---" for column in columns]
    lines = [[_safe(head) for head in heads], rule]
    lines += [[_safe(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _safe(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    for sign in "\\`*_|<>#[]":
        text = text.replace(sign, f"\\{sign}")
    return text
