"""Equations on positions, velocities and accelerations: loops, couplings, rolling, momentum."""
