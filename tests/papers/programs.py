"""The programs of ``examples/`` as modules; no test lives here."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "examples"


def program(name: str) -> ModuleType:
    """An example, imported as it is when started: with its folder first on the path."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)


def picture(folder: Path) -> str | None:
    """Where an example shall draw; None without matplotlib, which the tests do not need."""
    return str(folder / "plot.png") if find_spec("matplotlib") else None
