"""Spatial vectors: se(3) as an algebra, and twists and wrenches in arrays. Knows no robot."""
