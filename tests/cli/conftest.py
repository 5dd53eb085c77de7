"""Robots that commands are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..fourbar_files import apart, fourbar


@pytest.fixture
def robot(tmp_path: Path) -> str:
    """A four-bar that can be assembled."""
    return str(fourbar(tmp_path))


@pytest.fixture
def open_robot(tmp_path: Path) -> str:
    """One that cannot."""
    return str(apart(tmp_path))
