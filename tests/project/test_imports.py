"""What `import pinloop` costs: no viewer, no command line, few modules, little time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..states import URDF

HEAVY = (
    "IPython",
    "PIL",
    "collada",
    "matplotlib",
    "meshcat",
    "networkx",
    "rich",
    "tornado",
    "trimesh",
    "typer",
    "umsgpack",
    "zmq",
)
"""For seeing robots and for the command line: imported when these are used."""

MOST_MODULES = 260
"""201 of other packages were counted beyond those of Pinocchio and NumPy. SciPy's are imported when
they are needed; any one of them brings a hundred more."""

MOST_TIMES = 8
"""Processor time over that of importing Pinocchio and NumPy: 5.4 to 5.9 were measured."""


def asked(program: str) -> list[str]:
    """Words that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.split()


def test_only_what_is_needed_is_imported() -> None:
    program = "import sys, pinloop; print(*(name.partition('.')[0] for name in sys.modules))"
    assert set(asked(program)) & set(HEAVY) == set()


def test_the_number_of_modules() -> None:
    program = (
        "import sys, pinocchio, numpy; before = set(sys.modules); import pinloop; "
        "print(*(set(sys.modules) - before))"
    )
    others = [name for name in asked(program) if name.partition(".")[0] != "pinloop"]
    assert len(others) <= MOST_MODULES


def test_the_time() -> None:
    program = (
        "import time; start = time.process_time(); import pinocchio, numpy; "
        "before = time.process_time(); import pinloop; "
        "print((time.process_time() - before) / (before - start))"
    )
    # The first run may have to compile; the fastest says what the import costs.
    assert min(float(asked(program)[0]) for _ in range(3)) < MOST_TIMES


@pytest.mark.parametrize(
    "first", ["pass", "import pinloop.show.scene.scene", "import pinloop.io.urdf.reader"]
)
def test_functions_win_over_folders_of_the_same_name(first: str) -> None:
    program = (
        f"{first}\nimport pinloop as pl; print(*map(callable, (pl.view, pl.save_html, pl.load)))"
    )
    assert asked(program) == ["True"] * 3


def test_the_command_line_does_not_bring_the_viewer() -> None:
    # A package that is to be loaded when it is used is there already, but none of its modules.
    program = (
        "import sys, pinloop.cli.main; "
        "print(*(name.partition('.')[0] for name in sys.modules if '.' in name))"
    )
    loaded = set(asked(program))
    assert "typer" in loaded
    assert loaded & (set(HEAVY) - {"typer", "rich"}) == set()


def test_a_command_brings_only_its_own_floors() -> None:
    """A robot is checked without stops and studies, and without the viewer."""
    program = (
        "import sys, contextlib, io, pinloop.cli.main as cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    code = cli.run(['check', {str(URDF / 'palletizer.urdf')!r}])\n"
        "print(code, *sys.modules)"
    )
    code, *loaded = asked(program)
    above = ("pinloop.safety", "pinloop.simulation", "pinloop.scenarios", "pinloop.show.scene")
    assert code == "0" and "pinloop.cli.robots" in loaded
    assert [name for name in loaded if name.startswith(above)] == []


def test_the_command_line_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pinloop", "check", "nowhere.urdf"],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "error: nowhere.urdf: no such file\n")


def test_what_tab_offers() -> None:
    """Public names alone, not those of modules such as `pinloop.boundary.arguments`."""
    program = "import pinloop; print(*dir(pinloop), '|', *sorted(pinloop.__all__))"
    offered, _, public = " ".join(asked(program)).partition(" | ")
    assert offered == public and "checks" not in offered.split()
