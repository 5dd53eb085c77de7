"""A sheet as HTML, for notebooks: tables with their styles beside them, nothing else needed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .sheet import (
    Block,
    Cell,
    Column,
    Facts,
    Grid,
    Mark,
    Notes,
    Sheet,
    column_runs,
    heading_over,
    heading_under,
)

__all__ = ["page_of"]

_PAGE = "font-family: system-ui, sans-serif; font-variant-numeric: tabular-nums"
_COLOURS = {"good": "#1a7f37", "bad": "#c0272d", "caution": "#8a5a00"}


def page_of(sheet: Sheet) -> str:
    """The HTML of a sheet: an element to be put into a page."""
    parts = [f'<div style="{_PAGE}">', _element("h3", sheet.title.text, sheet.title.mark)]
    for block in sheet.blocks:
        parts += [_element("h4", block.title), _block(block)]
    if sheet.closing:
        parts.append(_element("p", sheet.closing))
    return "\n".join([*parts, "</div>"])


def _element(tag: str, text: str, mark: Mark = "", side: str = "") -> str:
    styles = [f"text-align: {side}"] if side else []
    styles += [f"color: {_COLOURS[mark]}"] if mark in _COLOURS else []
    style = f' style="{"; ".join(styles)}"' if styles else ""
    return f"<{tag}{style}>{escape(text)}</{tag}>"


def _block(block: Block) -> str:
    if isinstance(block, Notes):
        return f"<ul>{''.join(_element('li', item, block.mark) for item in block.items)}</ul>"
    if isinstance(block, Facts):
        rows = (
            _element("th", label, side="left") + _element("td", cell.text, cell.mark, "left")
            for label, cell in block.entries
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    return _grid(block)


def _grid(grid: Grid) -> str:
    first, *others = grid.columns
    upper = "<th></th>" + "".join(
        f'<th colspan="{len(run)}" style="text-align: center">{over}</th>'
        for run in column_runs(grid)
        for over in [escape(heading_over(grid, run))]
    )
    lower = _element("th", first.heading, side="left") + "".join(
        _element("th", heading_under(column), side=_side(column)) for column in others
    )
    body = "".join(f"<tr>{_row(grid, row)}</tr>" for row in grid.rows)
    return f"<table><thead><tr>{upper}</tr><tr>{lower}</tr></thead><tbody>{body}</tbody></table>"


def _row(grid: Grid, row: Iterable[Cell]) -> str:
    return "".join(
        _element("td", cell.text, cell.mark, _side(column))
        for column, cell in zip(grid.columns, row, strict=True)
    )


def _side(column: Column) -> str:
    return "right" if column.right else "left"
