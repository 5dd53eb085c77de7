"""Scenarios: runs that a YAML file describes, from the robot to the files that are written.

`entries` says what may be in a file, `reading` makes a run of it, `forcelist` its forces and
events, `outputs` writes files, `summary` says what came out. Nothing here steps.
"""

from __future__ import annotations

from .entries import Scenario
from .reading import PlannedRun, load_scenario

__all__ = ["PlannedRun", "Scenario", "load_scenario"]
