"""Methods that hand their object to a room above it: looked up when called, in this one place.

`Mechanism.fitted` is such a method: a robot knows nothing of how its loops are closed. So are those
that draw: runs and stops know nothing of pages.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["forward"]


def forward(room: str, function: str, *arguments: Any, **options: Any) -> Any:
    """Call a function of a room that is named relative to the package.

    Args:
        room: the module, such as "rounding".
        function: its public function.
        arguments: what to call it with.
        options: likewise, by name.
    """
    return getattr(import_module(f"pinloop.{room}"), function)(*arguments, **options)
