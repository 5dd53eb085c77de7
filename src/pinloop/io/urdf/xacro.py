"""Xacro: robot files with macros, expanded by the package of that name where it is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from ...boundary.xml import Element, parse_xml

__all__ = ["expand", "is_xacro"]


def is_xacro(root: Element) -> bool:
    """Whether a document holds macros of xacro at its top."""
    return any(child.tag.startswith("xacro:") for child in root.children)


def expand(root: Element, path: Path | None) -> Element:
    """Run xacro on a file.

    Args:
        root: the document as it is.
        path: its file; includes are relative to it.

    Raises:
        LoadError: the package is not there, the document is no file, or xacro cannot expand it.
    """
    try:
        xacro: Any = importlib.import_module("xacro")
    except ImportError:
        raise root.error(
            "holds xacro macros; install xacro (pip install 'pinloop[xacro]'), or run it and load "
            "what it writes"
        ) from None
    if path is None:
        raise root.error("holds xacro macros; give the file, to which its includes are relative")
    try:
        text: str = xacro.process_file(str(path)).toprettyxml(indent="  ")
    except Exception as error:  # whatever the expressions of the file raise
        reason = " ".join(str(error).split())[:200]
        advice = ""
        if "ament_index" in reason or "rospkg" in reason:
            advice = "; $(find package) needs ROS: run xacro there and load what it writes"
        raise root.error(f"cannot be expanded by xacro: {reason}{advice}") from None
    return parse_xml(text, f"{root.source} (expanded)")
