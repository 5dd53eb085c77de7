"""Spatial vectors: se(3) as an algebra, twists and wrenches in arrays; no robot is known here."""
