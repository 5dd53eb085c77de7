"""Scenarios: runs that a YAML file describes, from the robot to the files that are written.

`scenario_entries` says what may be in a file, `reading` makes a run of it, `results` says what came
out and writes files. `fmu` makes a unit of a co-simulation of a robot. Nothing here steps.
"""
