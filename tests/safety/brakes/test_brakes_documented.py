"""Schema and documentation of the brake file are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tools.schemas import parameter_table, schema_of

import pinloop as pl
from pinloop.safety.brakes.brakes import Brakes
from pinloop.safety.brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "brakes.md").read_text(encoding="utf-8")


def test_schema_says_what_the_file_may_say() -> None:
    schema = schema_of("brakes")
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"format", "joints"}
    entry = schema["$defs"]["JointEntry"]
    assert entry["additionalProperties"] is False
    assert set(entry["properties"]) == {*JOINT_PARAMETERS, "source"}
    assert set(schema["$defs"]["ChainEntry"]["properties"]) == {*CHAIN_PARAMETERS, "source"}
    plain = {name: cell["anyOf"][0] for name, cell in entry["properties"].items()}
    assert plain["tolerance"] == {"type": "number", "minimum": 0.0, "exclusiveMaximum": 1.0}
    assert plain["efficiency"] == {"type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0}
    assert plain["kind"]["enum"] == ["friction", "tooth", "none"]
    table = schema["$defs"]["StaticTorque"]
    assert table["properties"]["value"]["anyOf"][1] == {"type": "null"}
    assert table["required"] == ["value"] and table["additionalProperties"] is False
    assert all(cell["description"] for cell in entry["properties"].values())


def test_the_schema_fits_the_files_that_are_shipped() -> None:
    schema = jsonschema.Draft202012Validator(schema_of("brakes"))
    for path in (ROOT / "urdf").glob("*.brakes.yaml"):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert schema.is_valid(data), path
        name = next(iter(data["joints"]))
        assert schema.is_valid({**data, "joints": {name: None}})
        for misfit in (3, {"delay": -1}, {"delay": {"source": "measured"}}, {"dely": 1}):
            assert not schema.is_valid({**data, "joints": {name: misfit}}), misfit


def section(title: str) -> str:
    match = re.search(rf"<!-- {title} -->\n(.*?)<!-- end -->", DOCS, re.DOTALL)
    assert match is not None
    return match[1]


def test_tables_of_the_documentation_are_current() -> None:
    assert section("parameters of a joint") == parameter_table(JOINT_PARAMETERS)
    assert section("parameters of the chain") == parameter_table(CHAIN_PARAMETERS)
    table = section("parameters of a joint")
    (row,) = re.findall(r"^\| `breakaway` .*$", table, re.MULTILINE)
    assert row == (
        "| `breakaway` | N m | N | `null` | at least 0 | dry friction of gear and bearings at "
        "standstill (Stribeck), joint side; null: as coulomb |"
    )


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    match = re.search(r"<!-- brake file of (\S+) -->\n```yaml\n(.*?)```", DOCS, re.DOTALL)
    assert match is not None
    path = tmp_path / "x.brakes.yaml"
    path.write_text(match[2], encoding="utf-8")
    brakes = Brakes.from_yaml(path).for_robot(pl.load(ROOT / match[1]))
    assert len(brakes.joints) == 3 and brakes.warnings == ()
    third = brakes.joints["joint_3"]
    assert (third.sources["coulomb"], third.sources["delay"]) == ("measured", "published")


def test_the_program_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    match = re.search(r"<!-- python -->\n```python\n(.*?)```", DOCS, re.DOTALL)
    assert match is not None
    (tmp_path / "urdf").symlink_to(ROOT / "urdf")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(match[1], found)
    assert (tmp_path / "six_axis_arm.brakes.yaml").is_file()
    assert capsys.readouterr().out == "18.0\n()\n()\n"
    assert len(found["weak"].faults) == 2


def test_links_of_the_documentation_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", DOCS):
        assert (ROOT / "docs" / target).exists(), target
