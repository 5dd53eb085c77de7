"""The notebooks run from top to bottom in a kernel of their own, and are kept without outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import pinloop as pl

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
PLACES = {"closed_loop_robot": ROOT, "emergency_stop": FOLDER}
"""Where each is opened: one from the root of the repository, one from its own folder."""


def cells(name: str) -> list[dict[str, Any]]:
    content = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return list(content["cells"])


def code(name: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == "code"]


def test_there_are_two() -> None:
    assert sorted(PLACES) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    for cell in cells(name):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        assert cell["metadata"] == {}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_tells_a_story_and_ends_with_its_claims(name: str) -> None:
    kinds = [cell["cell_type"] for cell in cells(name)]
    assert kinds[0] == "markdown" and kinds[-1] == "code"
    # Prose before nearly every program.
    assert kinds.count("markdown") >= 0.8 * kinds.count("code")
    assert code(name)[-1].count("assert ") >= 8
    # Where the files are does not depend on where it is opened.
    first, *others = code(name)
    assert 'if (folder / "urdf").is_dir()' in first
    assert not any("urdf/" in text or "../" in text for text in others)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # The kernel of this environment, without what the user has set up for notebooks.
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "TMPDIR"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYTHONPATH", str(Path(pl.__file__).parents[1]))  # what is tested here
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning:__main__")
    content = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        content,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(PLACES[name])}},
    )
    client.execute()  # an error in a cell, also a failed assertion, is raised here
    outputs = [output for cell in content.cells for output in cell.get("outputs", ())]
    assert [found["text"] for found in outputs if found.get("name") == "stderr"] == []
    assert any("image/png" in found.get("data", {}) for found in outputs)
    assert any("text/html" in found.get("data", {}) for found in outputs)
