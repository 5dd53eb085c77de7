"""Scenarios: runs that a YAML file describes, from the robot to the files that are written.

`scenario_entries` says what may be in a file, `reading` makes a run of it, `results` says what came
out and writes files. Nothing here steps.
"""

from __future__ import annotations

from .reading import PlannedRun, load_scenario
from .scenario_entries import Scenario

__all__ = ["PlannedRun", "Scenario", "load_scenario"]
