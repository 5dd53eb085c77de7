"""The base of all HTML pages: one template, one look, nothing fetched when they are opened.

Pages of other rooms extend ``page.html`` by templates of their own, in their folder ``templates``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import lazy_loader

from ..errors import printable
from .markup import Content, Markup, joined

jinja2 = lazy_loader.load("jinja2")

__all__ = ["asset", "document", "render", "style"]

_HERE = "pinloop.tables"
_BARE = Markup("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
"""What the browser lets a page without scripts do: nothing that needs a network."""


def document(title: str, style: str, *body: Content, policy: Markup = _BARE) -> str:
    """The text of a page that needs nothing else.

    Args:
        title: its title.
        style: its rules.
        body: what is in it.
        policy: what the browser lets it do.
    """
    return render(
        "page.html", title=printable(title), style=Markup(style), body=joined(*body), policy=policy
    )


def render(template: str, room: str = _HERE, **values: Any) -> str:
    """Fill in a template; texts are escaped, what is `Markup` is not.

    Args:
        template: name of its file.
        room: package in whose folder ``templates`` it is.
        values: what stands in it, by name.
    """
    text: str = _environment(room).get_template(template).render(values)
    return text


def style(scope: str = "") -> Markup:
    """Rules for tables, of a whole page or within elements of a class.

    Args:
        scope: the class; empty for the rules of a page.
    """
    tables = render("tables.css", within=f".{scope} " if scope else "")
    return Markup(tables if scope else tables + render("page.css"))


def asset(room: str, name: str) -> str:
    """The text of a file in the folder ``assets`` of a package."""
    return files(room).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment(room: str) -> Any:
    loaders = [jinja2.PackageLoader(name) for name in dict.fromkeys((room, _HERE))]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
