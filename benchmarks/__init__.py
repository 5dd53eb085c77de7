"""Measurements beside peers in the same run, as ratios. Not part of the package."""
