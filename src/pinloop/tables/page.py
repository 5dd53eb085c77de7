"""Pages and markup from templates: one look, texts escaped once, nothing fetched when opened.

Templates and assets lie in the folders of the rooms that fill them in, and are named from the
package on: ``show/scene/templates/run.html``. Pages extend ``tables/templates/page.html``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import lazy_loader

from ..errors import printable

jinja2 = lazy_loader.load("jinja2")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()

    def __html__(self) -> str:
        """The text for templates, which escape whatever has none."""
        return self


def render(template: str, **values: Any) -> Markup:
    """Fill in a template, named from the package on, by values.

    In markup, texts are escaped and shown without control characters; `Markup` is taken as it is.
    """
    return Markup(_environment().get_template(template).render(values))


def asset(name: str) -> Markup:
    """The text of a file, named from the package on."""
    return Markup(files("pinloop").joinpath(name).read_text(encoding="utf-8"))


@cache
def _environment() -> Any:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pinloop", "."),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.globals["asset"] = asset
    environment.filters["markdown"] = _markdown
    environment.filters["g"] = lambda value: f"{value:g}"
    return environment


def _shown(value: Any) -> Any:
    """A text without control characters; no-break spaces stay."""
    if type(value) is not str:
        return value
    return "\N{NO-BREAK SPACE}".join(map(printable, value.split("\N{NO-BREAK SPACE}")))


def _markdown(text: str) -> Markup:
    """Text in which Markdown sees nothing of its own."""
    return Markup(re.sub(r"([\\`*_|<>#\[\]])", r"\\\1", text))
