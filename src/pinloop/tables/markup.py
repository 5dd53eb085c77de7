"""HTML and SVG as values: text is escaped where it enters, markup is not escaped twice."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ..errors import printable

__all__ = ["Content", "Markup", "element", "joined"]


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()

    def __html__(self) -> str:
        """The text for templates, which escape whatever has none."""
        return self


Content = str | Markup | Iterable["str | Markup"]
"""Markup, or text that is still to be escaped, or several of both."""

_VOID = frozenset({"br", "img", "meta", "link", "input", "col"})


def element(tag: str, /, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Args:
        tag: its name.
        content: what is in it; text is escaped.
        attributes: by name; ``_`` stands for ``-`` and a trailing one is dropped (``class_``).
            None and False leave an attribute out, True stands alone.
    """
    written = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escape(_value(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(*content)}</{tag}>")


def joined(*content: Content, between: str = "") -> Markup:
    """Contents one after another."""
    return Markup(between.join(_escaped(part) for part in content))


def _escaped(content: Content) -> str:
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return escape(printable(content))
    return joined(*content)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | float | bool) -> str:
    return printable(value) if isinstance(value, str) else f"{value:g}"
