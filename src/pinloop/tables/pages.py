"""A sheet as a page: HTML with everything in it, or Markdown."""

from __future__ import annotations

from html import escape

from .html import page_of
from .sheet import Block, Column, Facts, Grid, Notes, Sheet

__all__ = ["html_of", "markdown_of"]

_STYLE = """\
body { margin: 2em auto; max-width: 75em; padding: 0 1em; font-family: system-ui, sans-serif; }
table { border-collapse: collapse; }
th, td { border: 1px solid #c8ccd2; padding: 0.2em 0.6em; }
th { background: #f2f4f7; }"""


def html_of(sheet: Sheet) -> str:
    """A page of its own: needs no other file and no network."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><title>{escape(sheet.title.text)}</title>',
            f"<style>\n{_STYLE}\n</style></head>",
            f"<body>\n{page_of(sheet)}\n</body>",
            "</html>\n",
        ]
    )


def markdown_of(sheet: Sheet) -> str:
    """The sheet with tables as GitHub reads them; a heading over several columns is in each."""
    parts = [f"# {_safe(sheet.title.text)}"]
    for block in sheet.blocks:
        parts += [f"## {_safe(block.title)}", _block(block)]
    if sheet.closing:
        parts.append(_safe(sheet.closing))
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Notes):
        return "\n".join(f"- {_safe(item)}" for item in block.items)
    if isinstance(block, Facts):
        rows = [[label, cell.text] for label, cell in block.entries]
        return _table([Column("", right=False)] * 2, ["", ""], rows)
    return _grid(block)


def _grid(grid: Grid) -> str:
    heads = []
    for column in grid.columns:
        words = " ".join(word for word in (column.group, column.heading) if word)
        heads.append(f"{words} [{column.unit}]" if column.unit else words)
    return _table(list(grid.columns), heads, [[cell.text for cell in row] for row in grid.rows])


def _table(columns: list[Column], heads: list[str], rows: list[list[str]]) -> str:
    rule = ["---:" if column.right else ":---" for column in columns]
    lines = [[_safe(head) for head in heads], rule]
    lines += [[_safe(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _safe(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    for sign in "\\`*_|<>#[]":
        text = text.replace(sign, f"\\{sign}")
    return text
