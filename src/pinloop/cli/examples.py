"""The command `pinloop examples`: robots that come with pinloop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer

from ..errors import UnknownName
from ..io.examples import Example, copy_examples, known_examples
from ..tables.report import Notes, Report, Table
from .options import ROBOTS, AsJson, Commands, Force, check_targets, file_option, give_result

app = Commands(ROBOTS)


@app.add("examples", "examples palletizer", "examples palletizer delta -o robots")
def examples(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Robots to describe or copy; all by default.",
            show_default=False,
            autocompletion=lambda incomplete: [
                name for name in known_examples() if name.startswith(incomplete)
            ],
        ),
    ] = None,
    output: Annotated[
        Path | None,
        file_option(
            "Copy the files of these robots into this folder, to be edited.",
            "--output",
            "-o",
            metavar="DIR",
            ends=("/",),
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = None,
) -> None:
    """List the robots that come with pinloop, describe some, or copy their files.

    Every command that takes a robot file takes the name of one of them, too.
    """
    check_targets((), json=as_json)
    chosen = names or list(known_examples())
    for name in chosen:
        if name not in known_examples():
            raise UnknownName("example", name, known_examples())
    written = [] if output is None else copy_examples(chosen, output, force=force)
    robots = [known_examples()[name] for name in chosen]
    give_result(
        as_json,
        lambda: _document(robots),
        lambda: _list(robots) if written or not names else _descriptions(robots),
        written,
    )


class ExampleRecord(TypedDict):
    """A robot, and the paths of its files: the URDF first."""

    name: str
    description: str
    files: list[str]


class ExamplesDocument(TypedDict):
    """Robots that come with pinloop."""

    format: Literal["pinloop-examples-1"]
    examples: list[ExampleRecord]


def _document(robots: list[Example]) -> ExamplesDocument:
    records: list[ExampleRecord] = [
        {
            "name": robot.name,
            "description": robot.description,
            "files": [str(path) for path in robot.files],
        }
        for robot in robots
    ]
    return {"format": "pinloop-examples-1", "examples": records}


def _list(robots: list[Example]) -> Report:
    rows = ((robot.name, robot.summary, _extras(robot)) for robot in robots)
    table = Table.of("Robots", ("<name", "<what it is", "<comes with"), rows)
    closing = (
        "Each can be named instead of a robot file: pinloop stop palletizer; in Python, "
        'pl.example("palletizer").'
    )
    return Report.of("robots that come with pinloop", (table,), closing)


def _extras(robot: Example) -> str:
    names = (path.name.removesuffix(".yaml").rpartition(".")[2] for path in robot.files[1:])
    return ", ".join(names)


def _descriptions(robots: list[Example]) -> Report:
    blocks = []
    for robot in robots:
        paragraphs = (" ".join(part.split()) for part in robot.description.split("\n\n"))
        blocks.append(Notes.of(robot.name, (*paragraphs, *map(str, robot.files))))
    return Report.of("robots that come with pinloop", blocks)
