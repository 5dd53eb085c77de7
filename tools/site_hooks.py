"""What `mkdocs build` does besides: formulas become MathML, so that no script has to set them.

Only mkdocs imports this file (``hooks`` of ``mkdocs.yml``).
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

__all__ = ["on_page_content"]

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[\(\[])(?P<tex>.*?)\\[\)\]]</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(markup: str, **_: Any) -> str:
    """Replace what `pymdownx.arithmatex` marked by MathML.

    Args:
        markup: HTML of the page's text.

    Returns:
        The same with ``<math>`` in place of TeX; the TeX stays as an annotation for the clipboard.
    """
    return _FORMULA.sub(_mathml, markup)


def _mathml(found: re.Match[str]) -> str:
    tex = html.unescape(found["tex"]).strip()
    display = found["open"] == "["
    made = convert(tex, display="block" if display else "inline")
    if "\\" in re.sub(r"<annotation.*?</annotation>", "", made):
        raise ValueError(f"formula {tex!r} has a command that latex2mathml does not know")
    tag = found["tag"]
    return f'<{tag} class="formula">{made}</{tag}>'
