"""Equations on positions, velocities and accelerations; evaluated here, solved elsewhere."""
