"""The source does not grow wild: what `tools.house` counts, and that it counts right."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tools.house import MEASURES, Measure, Package, report

ROOT = Path(__file__).parents[2]

REACHED = {
    "lines": 80_100,
    "files": 325,
}
"""What exceeds its target still: lower these numbers when the source gets better.

They were raised from 57,500 and 209 for capabilities that nothing here had before and that replace
little: derivatives of looped robots, linear systems and equilibria; then sensitivities of runs and
stops, torques as drives see them, and optimal control and inverse kinematics elsewhere; then laws
of controlled stops, estimates of brakes with their bands, allowed speeds and values by name; then
intervals of every outcome of a stop, recordings, searches by studies, maps of cells, robots mounted
on robots, MeshCat, and programs, messages and units for other tools; then serial twins, torques of
brakes that fall with speed and heat, and couplings and forces on axes in absolute coordinates; then
robots written as MJCF, SDF and USD, and read from USD, and runs as glTF and for rerun.
"""


@cache
def package() -> Package:
    return Package()


@pytest.mark.parametrize("measure", [pytest.param(m, id=m.name) for m in MEASURES])
def test_the_source_keeps_its_measures(measure: Measure) -> None:
    places = list(measure.places(package()))
    most = max(measure.target, REACHED.get(measure.name, 0))
    listed = "\n".join(places) if measure.is_listed else ""
    assert len(places) <= most, f"{len(places)} {measure.name}, {most} at most\n{listed}"


def test_what_has_reached_its_target_is_held_to_it() -> None:
    targets = {measure.name: measure.target for measure in MEASURES}
    assert all(most > targets[name] for name, most in REACHED.items())


# -- floors -------------------------------------------------------------------------------------


def test_the_picture_has_the_floors_of_the_contract() -> None:
    """`docs/architecture.md` draws each floor on the line that the import contract gives it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors, inside, *_ = (
        one["layers"] for one in project["tool"]["importlinter"]["contracts"] if "layers" in one
    )
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = page.partition("```text\n")[2].partition("```")[0]
    place = 0
    k = floors.index("pinloop.safety") + 1
    for layer in [*floors[:k], *inside, *floors[k:]]:
        names = " | ".join(name.rpartition(".")[2] for name in layer.split(" | "))
        found = re.compile(rf"^[ a-z]{{12,14}}{re.escape(names)}\b", re.MULTILINE)
        match = found.search(picture, place)
        assert match, f"{names} is not below {picture[:place].splitlines()[-1:]}"
        place = match.end()


def test_the_files_that_own_things_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w/]+\.pyi?)`", page)
    assert len(paths) > 15
    for path in paths:
        below = ROOT / "src" / "pinloop" / path
        assert below.is_file() or (ROOT / path).is_file(), path


def test_the_kernel_stays_small() -> None:
    """What is fast is not grown beyond what can be read.

    Derivatives count apart: no run needs them, and who reads how a robot moves need not read them.
    """
    files = [*(ROOT / "src" / "native").glob("*.[ch]pp")]
    lines = {file.name: file.read_text(encoding="utf-8").splitlines() for file in files}
    sizes = {name: len(rows) for name, rows in lines.items()}
    assert not [(name, row) for name, rows in lines.items() for row in rows if len(row) > 100]
    slopes = sum(size for name, size in sizes.items() if name.startswith("derivatives"))
    assert len(sizes) > 5 and sum(sizes.values()) - slopes <= 2600 and max(sizes.values()) <= 450
    assert slopes <= 645


def test_what_is_called_above_is_there() -> None:
    """Neither the type checker nor the import contract sees the names that `forward` is given."""
    called = 0
    for name, module in package().modules.items():
        for node in module.nodes:
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "forward"):
                continue
            if not isinstance(node.args[1], ast.Constant):
                continue  # other methods of this name
            room, function = node.args[0], str(node.args[1].value)
            constants = vars(import_module(name))
            above = constants[room.id] if isinstance(room, ast.Name) else ast.literal_eval(room)
            assert callable(getattr(import_module(f"pinloop.{above}"), function)), name
            called += 1
    assert called > 15


# -- the counting -------------------------------------------------------------------------------

SOURCES = {
    "__init__.py": "from .low import base\n",
    "low/__init__.py": "",
    "low/base.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .above import Above\n"
        "def one(a, b, c, d, e, f, g, h, *, kept):\n    found = 1  # fmt: skip\n"
    ),
    "low/above.py": "from . import base\nfrom .base import one\nclass Above: ...\n",
    "low/far.py": "def reach():\n    import pinocchio\n    from ..high.top import go\n",
    "low/a_b.py": "x, y = 1e-5, 1e-3\n", "low/a_c.py": "", "low/a_d.py": "",
    "high/__init__.py": "",
    "high/top.py": (
        "from ..low.above import Above\ndef go(self):\n    '''Says.\n\n    More.\n    '''\n"
        + "    x = 0\n" * 59
    ),
    "high/long.py": "def go():\n" + "    x = 0\n" * 60 + "# type: ignore\n",
    "high/base.py": "",
}  # fmt: skip
PLACES = {
    "files beside the folders": ["__init__.py"],
    "file names used twice": ["base.py: high, low"],
    "folders written as prefixes": ["low/a_*"],
    "cycles between modules": ["house.low.above, house.low.base"],
    "cycles between folders": ["high, low"],
    "imports inside functions": ["low/far.py:2", "low/far.py:3"],
    "small modules with one user": ["high/top.py"],
    "long functions": ["high/long.py:1 go (61)"],
    "functions with many parameters": ["low/base.py:4 one (9)"],
    "names that say nothing": ["low/base.py:5 found", "low/base.py:4 kept"],
    "lines left alone by tools": ["high/long.py:62", "low/base.py:5"],
    "tolerances outside the table": ["low/a_b.py:1 1e-05"],
}


@pytest.fixture
def house(tmp_path: Path) -> Package:
    for name, text in SOURCES.items():
        file = tmp_path / "house" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Package(tmp_path / "house")


def test_what_is_counted_in_a_small_package(house: Package) -> None:
    places = {measure.name: list(measure.places(house)) for measure in MEASURES}
    assert len(places.pop("lines")) == sum(text.count("\n") for text in SOURCES.values())
    assert len(places.pop("files")) == len(SOURCES)
    assert {name: sorted(at) for name, at in places.items()} == {
        name: sorted(at) for name, at in PLACES.items()
    }


def test_the_report_lists_what_exceeds_its_target(house: Package) -> None:
    text = report(house, most=1)
    assert "  house.low.above, house.low.base" in text
    assert "imports inside functions" in text and "low/far.py" not in text  # within the target
