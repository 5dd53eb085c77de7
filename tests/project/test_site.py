"""The documentation as a site: built strictly, complete, and whole without a network.

Needs ``pip install '.[docs]'``. ``PINLOOP_SITE`` names a site that is built already.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from ..show.browser import Browser, needs_browser
from .test_docs import ROOMS

ROOT = Path(__file__).parents[2]
GIVEN = os.environ.get("PINLOOP_SITE")

pytestmark = pytest.mark.skipif(
    GIVEN is None and find_spec("mkdocs") is None,
    reason="the site is built by mkdocs: pip install '.[docs]'",
)

LOADING = {
    "script": ("src",), "link": ("href",), "img": ("src", "srcset"), "iframe": ("src",),
    "source": ("src", "srcset"), "video": ("src", "poster"), "object": ("data",),
}  # fmt: skip
"""Elements that make a browser load something, and by which attributes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if GIVEN is not None:
        return Path(GIVEN).resolve()
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: with it mkdocs does not count the warnings that --strict is about.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder


class Loads(HTMLParser):
    """What a page loads, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag != "link" or found.get("rel") != "canonical":
            self.loads += [found[name] for name in LOADING.get(tag, ()) if name in found]
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if "id" in found:
            self.ids.add(found["id"])


def pages(site: Path) -> dict[Path, Loads]:
    return {
        path: Loads(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    found = pages(site)
    assert len(found) > 20
    for path, page in found.items():
        for address in page.loads:
            parts = urlsplit(address)
            assert not parts.netloc and parts.scheme in ("", "data"), f"{path}: {address}"
            if not parts.scheme:
                assert (path.parent / unquote(parts.path)).exists(), f"{path}: {address}"
    for path in site.rglob("*.css"):
        style = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style), path


def test_every_link_inside_leads_somewhere(site: Path) -> None:
    found = pages(site)
    for path, page in found.items():
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path}: {address}"
            # Those of the table of contents that begin with two underscores are the theme's.
            if parts.fragment and target in found and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in found[target].ids, f"{path}: {address}"


def test_every_page_and_public_name_is_there(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        assert (site / source.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), source
    ids = {name.rpartition(".")[2] for page in pages(site).values() for name in page.ids}
    names = {name for room in ROOMS.values() for name in room.__all__}
    assert names - {path.removeprefix("pl.") for path in ROOMS} <= ids


def test_formulas_are_set_when_the_site_is_built(site: Path) -> None:
    text = (site / "regularization.html").read_text(encoding="utf-8")
    body = re.sub(r"<(pre|code)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert body.count("<math ") > 20
    assert "arithmatex" not in body and "\\(" not in body and "$$" not in body


@needs_browser
@pytest.mark.parametrize("name", ["regularization.html", "api/dynamics.html"])
def test_a_page_is_whole_in_a_browser_without_a_network(
    site: Path, name: str, tmp_path: Path
) -> None:
    with Browser(site / name, tmp_path, (1200, 900)) as page:
        assert page.value("document.querySelector('h1').innerText").strip("¶\n ")
        assert page.value("getComputedStyle(document.querySelector('.md-header')).position") in (
            "sticky", "fixed",
        )  # fmt: skip
        # The page itself is never wider than the window; tables and formulas scroll.
        for width in (400, 1200):
            page.send(
                "Emulation.setDeviceMetricsOverride",
                width=width, height=900, deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            assert page.value("document.documentElement.scrollWidth") <= width
        if name.startswith("reg"):
            wide, high = page.value(
                "(() => { const r = document.querySelector('div.formula math')"
                ".getBoundingClientRect(); return [r.width, r.height]; })()"
            )
            assert wide > 60 and high > 12
        found = page.value(SEARCH)
        assert any("locking.html" in address for address in found), found
        assert page.complaints == [] and page.requests == []


SEARCH = """new Promise((resolve, reject) => {
  document.querySelector('[data-md-toggle=search]').click();
  const field = document.querySelector('[data-md-component=search-query]');
  field.focus();
  field.value = 'momentum kept locking';
  field.dispatchEvent(new Event('input', {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  const end = Date.now() + 15000;
  const look = () => {
    const found = [...document.querySelectorAll('.md-search-result__link')].map(a => a.href);
    if (found.length) resolve(found);
    else if (Date.now() > end) resolve([]);
    else setTimeout(look, 100);
  };
  look();
})"""
"""Types into the search of the page, and waits for what it finds."""
