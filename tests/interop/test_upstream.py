"""The reports for Pinocchio hold; a test that fails here says that upstream has mended it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..pages import blocks

REPORTS = Path(__file__).parents[2] / "docs" / "upstream"
ERRORS = {"moving_axes": 0.7, "point_contacts": 2.4, "shared_data": 0.1}


@pytest.mark.parametrize("report", ERRORS)
def test_a_report_for_pinocchio_holds(report: str) -> None:
    (block,) = blocks((REPORTS / f"{report}.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    exec(block.body, names)
    assert names["error"] == pytest.approx(ERRORS[report], rel=0.2), "mended: take the report away"


def test_all_reports_are_tested() -> None:
    assert {page.stem for page in REPORTS.glob("*.md")} == {*ERRORS}
