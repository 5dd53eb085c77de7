"""Where a run goes: swept volume, clearance, self-collisions, limits that are passed.

Knows robots and runs, of a simulation or of a stop; nothing of brakes, and never steps.
"""
