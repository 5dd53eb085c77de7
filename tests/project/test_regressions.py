"""What campaigns have found stays mended: every file in tests/regressions is tried again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools.soak.__main__ import CAMPAIGNS
from tools.soak.regressions import FOLDER, TIMED

FILES = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_found_is_mended(path: Path) -> None:
    document = read(path)
    case = CAMPAIGNS[document["campaign"]].judge(document["case"])
    assert [finding for finding in case.findings if finding.kind not in TIMED] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_cause_is_known(path: Path) -> None:
    cause = read(path)["cause"]
    assert cause and "\n" not in cause and len(cause) < 200
