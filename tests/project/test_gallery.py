"""The gallery: every example has a part and a picture; the same numbers draw the same bytes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tools.gallery import EXAMPLES, LARGEST, OVERVIEWS, PAGE, PICTURES, small
from tools.pages import ROOT, between

from pinloop.show.plots import Chart, Line, draw_charts

from ..papers.programs import FOLDER, program

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_told(name: str) -> None:
    part = between(TEXT, name).lstrip()
    title = (program(name).__doc__ or "").splitlines()[0].rstrip(".")
    assert part.startswith(f"### {title}\n\n![{title}](gallery/{name}.png)\n")
    assert f"python examples/{name}.py --show" in part
    printed = part.partition("```text\n")[2].partition("```")[0]
    assert re.search(r"\d", printed), "an example prints its numbers"


def test_pictures_are_small_and_not_blank() -> None:
    names = {*EXAMPLES, *OVERVIEWS}
    assert set(re.findall(r"\]\(gallery/(\w+)\.png\)", TEXT)) == names
    files = sorted(PICTURES.iterdir())
    assert {file.name for file in files} == {f"{name}.png" for name in names}
    sizes = [file.stat().st_size for file in files]
    assert max(sizes) <= LARGEST and sum(sizes) < 2_000_000
    for file in files:
        with Image.open(file) as picture:
            shades = np.asarray(picture.convert("L"))
        assert shades.shape[1] >= 800, file.name
        assert 0.003 < np.mean(shades < 128) < 0.3, file.name


def test_the_page_names_no_program_that_is_not_there() -> None:
    for path in re.findall(r"python (examples/\w+\.py)", TEXT):
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_numbers_draw_the_same_bytes(kind: str, tmp_path: Path) -> None:
    draw = program("regularize_3prrr").draw_singular_values
    rng = np.random.default_rng(0)
    rows = {"some": [rng.normal(size=(4, 6))], "others": [rng.normal(size=(3, 6))]}
    files = [tmp_path / f"{k}.{kind}" for k in range(2)]
    for file in files:
        draw(str(file), "rows", rows)
    first, second = (file.read_bytes() for file in files)
    assert first == second and len(first) > 3_000
    assert b"Matplotlib" not in first and b"<dc:date>" not in first


def test_thin_lines_keep_their_colours(tmp_path: Path) -> None:
    """Few dots have the colour of a line, most are white or grey: none is rounded to another."""
    t = np.linspace(0, 1, 300)
    lines = [Line(f"line {k}", t, np.sin((5 + k) * t)) for k in range(8)]
    figure = draw_charts("title", [[Chart("y [m]", lines)]], (0.0, 1.0), [(0.5, "event")])
    figure.savefig(tmp_path / "large.png", dpi=130)
    small(tmp_path / "large.png", tmp_path / "small.png")
    found = []
    for name in ("large.png", "small.png"):
        with Image.open(tmp_path / name) as picture:
            found.append(np.asarray(picture.convert("RGB")).astype(int))
    assert found[0].shape == found[1].shape
    assert np.abs(found[0] - found[1]).max() <= 24
    assert np.abs(found[0] - found[1]).mean() < 0.25
    assert 2 * (tmp_path / "small.png").stat().st_size < (tmp_path / "large.png").stat().st_size


def test_wide_pictures_are_made_smaller(tmp_path: Path) -> None:
    Image.new("RGB", (2200, 500), "white").save(tmp_path / "large.png")
    small(tmp_path / "large.png", tmp_path / "new" / "small.png")
    with Image.open(tmp_path / "new" / "small.png") as picture:
        assert picture.size == (1100, 250)


def test_a_picture_is_opened_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    shared = importlib.import_module("common.program")
    opened: list[str] = []
    monkeypatch.setattr(shared.webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "argv", ["sketch.py", "--show", "--twice"])
    seen: dict[str, object] = {}

    def main(plot: str | None = None, twice: bool = False) -> None:
        seen.update(plot=plot, twice=twice)

    shared.start_program(main, "a sketch", flags={"twice": "do it twice"})
    assert seen["twice"] is True and str(seen["plot"]).endswith("sketch.png")
    assert opened == [Path(str(seen["plot"])).resolve().as_uri()]
    monkeypatch.setattr(sys, "argv", ["sketch.py"])
    shared.start_program(main, "a sketch", flags={"twice": "do it twice"})
    assert seen == {"plot": None, "twice": False} and len(opened) == 1
    assert capsys.readouterr().err == ""
