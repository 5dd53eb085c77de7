"""The brake file: YAML to brakes and back, and its JSON schema.

What the file may say follows from the fields of `JointBrake` and `Chain`. Knows no robot: whether a
joint exists is for `Brakes.for_robot` to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args

import yaml

from ...boundary.files import read_bytes, write_text
from ...boundary.marks import As, Name, Positive, Short, nonempty
from ...boundary.schema import keys_of, read_data
from ...boundary.yaml import line_of, read_yaml
from ...errors import BadValue, LoadError, PinloopError, UnknownName
from ...tables.report import render
from .brakes import Brakes
from .joint_brake import (
    CHAIN_PARAMETERS,
    JOINT_PARAMETERS,
    Chain,
    JointBrake,
    Parameter,
    Source,
    Value,
    first_problem,
)
from .uncertainty import Correlation

FORMAT: Literal["pinloop-brakes-1"] = "pinloop-brakes-1"
"""Version tag of the brake file."""

_FORMER_SOURCES: Mapping[str, Source] = {
    "datasheet": "published",
    "robot": "published",
    "assumed": "guess",
}
"""What sources were called in earlier versions."""


def _source(word: str) -> Source:
    """A source by the word of a file; a ValueError if it is none."""
    known: dict[str, Source] = {**{name: name for name in get_args(Source)}, **_FORMER_SOURCES}
    if word not in known:
        *words, last = map(repr, get_args(Source))
        raise ValueError(f"expected {', '.join(words)} or {last}")
    return known[word]


_FileSource = Annotated[Source, As(str, _source, {"enum": list(get_args(Source))})]


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A value with its provenance."""

    value: Any
    source: Annotated[_FileSource | None, "where the value comes from"] = None
    note: Annotated[str, "remark"] = ""
    spread: Annotated[Positive | None, "standard deviation, in the unit of the value"] = None


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Parameters with a common provenance."""

    source: Annotated[_FileSource | None, "where plain values of this table come from"] = None


def _block(name: str, kind: type[Any], parameters: Mapping[str, Parameter]) -> Any:
    """The table of the parameters of a class: each a bare value, or one with its provenance."""
    rows = []
    for key, parameter in parameters.items():
        bare = keys_of(kind)[key].kind
        given = make_dataclass(
            "".join(part.capitalize() for part in key.split("_")),
            [("value", Annotated[bare, "the value"])],
            bases=(_Given,),
            frozen=True,
            kw_only=True,
            namespace={"__doc__": f"{parameter.meaning.capitalize()}."},
        )
        either = Annotated[given, Short(bare, "value"), _description(parameter)]  # type: ignore[valid-type]
        rows.append((key, either, field(default=parameter.default)))
    text = (kind.__doc__ or "").partition("\n")[0]
    block = make_dataclass(
        name, rows, bases=(_Block,), frozen=True, kw_only=True, namespace={"__doc__": text}
    )
    return Annotated[block, Short(NoneType, lambda value: {} if value is None else value)]


def _description(parameter: Parameter) -> str:
    """Meaning, unit and what nothing means."""
    unit = f" [{_units(parameter)}]" if parameter.unit or parameter.sliding else ""
    return f"{parameter.meaning}{unit}" + _null(parameter)


def _null(parameter: Parameter) -> str:
    return f"; null: {parameter.otherwise}" if parameter.otherwise else ""


def _units(parameter: Parameter) -> str:
    """Unit on a turning joint and, where it differs, on a sliding one."""
    turning = parameter.unit or "-"
    return f"{turning} | {parameter.sliding}" if parameter.sliding else turning


_Joint: Any = _block("JointEntry", JointBrake, JOINT_PARAMETERS)
_Chain: Any = _block("ChainEntry", Chain, CHAIN_PARAMETERS)


@dataclass(frozen=True, kw_only=True)
class BrakeFile:
    """Brakes, gears and drives of a robot, for the analysis of its stops."""

    format: Annotated[Literal["pinloop-brakes-1"], "version of this format"]
    robot: Annotated[str, "name of the robot"] = ""
    source: Annotated[_FileSource, "where plain values of this file come from"] = "guess"
    chain: Annotated[_Chain, "from the signal to the command"] = _Block()
    defaults: Annotated[_Joint, "parameters of every joint"] = _Block()
    joints: Annotated[
        Mapping[Name, _Joint], nonempty, "parameters per joint, instead of the defaults"
    ]
    faults: Annotated[tuple[Name, ...], "what has been done to the brakes, in words"] = ()
    correlations: Annotated[
        tuple[Correlation, ...], "between numbers whose spread is given, such as delay:joint_1"
    ] = ()


def read_brakes(path: str | Path) -> Brakes:
    """Read a brake file; a `LoadError` names file, line and key."""
    source = str(path)
    data = read_yaml(read_bytes(path, "brake file"), source, "brake file")
    file = read_data(BrakeFile, data, source)
    chain = _values([file.chain], CHAIN_PARAMETERS, file.source)
    joints = {}
    for name, entry in file.joints.items():
        values = _values([file.defaults, entry], JOINT_PARAMETERS, file.source)
        bare = {key: value for key, value in values.items() if key in JOINT_PARAMETERS}
        problem = first_problem(bare)
        if problem is not None:
            key, sentence = problem
            where = f"joints.{name}.{key} is {bare.get(key, JOINT_PARAMETERS[key].default)}"
            raise LoadError(f"{where}: {sentence}", source=source, line=_line(data, name, key))
        joints[name] = JointBrake(**values)
    try:
        return Brakes(joints, Chain(**chain), file.faults, source, file.robot, file.correlations)
    except (BadValue, UnknownName) as error:
        raise LoadError(str(error), source=source, line=line_of(data, ("correlations",))) from None


def misfit(brakes: Brakes, joint: str, error: PinloopError) -> PinloopError:
    """Why a robot cannot have the brake of a joint; with file and line if brakes are from one."""
    source = brakes.source
    if not Path(source).is_file():
        return error
    line = line_of(read_yaml(read_bytes(source, "brake file"), source), ("joints", joint))
    of = f"the brakes of robot '{brakes.robot}'" if brakes.robot else "brakes"
    return LoadError(f"holds {of}: {error}", source=source, line=line)


def _values(
    blocks: list[Any], parameters: Mapping[str, Parameter], file_source: Source
) -> dict[str, Any]:
    """Arguments of a record from tables, of which the later ones win."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    notes: dict[str, str] = {}
    spreads: dict[str, float] = {}
    for block in blocks:
        for name in parameters:
            given = getattr(block, name, None)
            if not isinstance(given, _Given):
                continue
            values[name] = given.value
            sources[name] = given.source or block.source or file_source
            notes.pop(name, None)
            spreads.pop(name, None)
            if given.note:
                notes[name] = given.note
            if given.spread is not None:
                spreads[name] = given.spread
    return {**values, "sources": sources, "notes": notes, "spreads": spreads}


def _line(data: Any, joint: str, parameter: str) -> int | None:
    """Line that gives a parameter of a joint: its own one, that of the defaults, or the joint's."""
    for table, place in (
        (data["joints"][joint], ("joints", joint)),
        (data.get("defaults"), ("defaults",)),
    ):
        if parameter in (table or {}):
            return line_of(data, (*place, parameter))
    return line_of(data, ("joints", joint))


# -- writing ------------------------------------------------------------------------------------


_COLUMN = 46
"""Where the comments of a line begin, unless the line is longer."""


def write_brakes(path: str | Path, brakes: Brakes) -> Path:
    """Write a brake file that a person can edit; `read_brakes` reads the same back."""
    if not brakes.joints:
        raise BadValue("there are no brakes to be written; give at least one joint a brake")
    return write_text(path, brakes_text(brakes))


def brakes_text(brakes: Brakes) -> str:
    """Return the text of a brake file."""
    blocks = {n: _block_lines(b, JOINT_PARAMETERS, "    ") for n, b in brakes.joints.items()}
    return render(
        "safety/brakes/templates/brakes.yaml",
        brakes=brakes,
        format=FORMAT,
        parameters={**CHAIN_PARAMETERS, **JOINT_PARAMETERS},
        chain=_block_lines(brakes.chain, CHAIN_PARAMETERS, "  "),
        joints=blocks,
        empty={n for n, rows in blocks.items() if all(r.lstrip()[0] == "#" for r in rows)},
        scalar=_scalar,
        units=_units,
    )


def _block_lines(
    record: JointBrake | Chain, parameters: Mapping[str, Parameter], indent: str
) -> list[str]:
    """One line per parameter, as a comment where it is not given."""
    lines = []
    for name, parameter in parameters.items():
        value = getattr(record, name)
        source, note = record.sources.get(name), record.notes.get(name)
        spread = record.spreads.get(name)
        given = source is not None or note is not None or value != parameter.default
        if not given and isinstance(record, JointBrake) and record.kind not in parameter.kinds:
            continue
        entry = _scalar(value)
        if note is not None or spread is not None or source not in (None, "guess"):
            parts = [f"value: {entry}"]
            parts += [] if spread is None else [f"spread: {_scalar(spread)}"]
            parts += [] if source in (None, "guess") else [f"source: {source}"]
            parts += [] if note is None else [f"note: {_scalar(note, quoted=True)}"]
            entry = f"{{{', '.join(parts)}}}"
        hint = " or ".join(parameter.words) or _units(parameter)
        if not given:
            hint += f"; not given{_null(parameter).replace('; null', '')}"
        line = f"{indent}{'' if given else '# '}{name}: {entry}"
        lines.append(f"{line:<{_COLUMN}}  # {hint}")
    return lines


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def _scalar(value: Value, *, quoted: bool = False) -> str:
    """A value as YAML 1.1 and 1.2 read it alike."""
    if value is None:
        return "null"
    if isinstance(value, str):
        plain = not quoted and _PLAIN.fullmatch(value) and yaml.safe_load(value) == value
        if plain:
            return value
        text = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf)
        return str(text).strip()
    text = repr(value)
    # YAML 1.1 takes a number with exponent but without point for a word.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
