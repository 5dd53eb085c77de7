"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["File", "FloatingBase", "Loops", "PackageDirs"]

File = Annotated[
    Path,
    typer.Argument(
        help="Robot: URDF, SDF, MJCF, a Gepetto YAML or a screw table.", show_default=False
    ),
]
Loops = Annotated[
    list[Path] | None,
    typer.Option(
        help="What closes the loops, if FILE does not say: a loops file, a Gepetto YAML or an "
        "SRDF. May be given several times. Files of the same name beside FILE are found anyway.",
        show_default=False,
    ),
]
PackageDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--package-dir",
        help="Folder that holds the packages of package:// names. May be given several times.",
        show_default=False,
    ),
]
FloatingBase = Annotated[
    bool, typer.Option("--floating-base", help="Let the root link float instead of welding it.")
]
