"""The version, in one place; knows nothing."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
