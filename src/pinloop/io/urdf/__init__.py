"""URDF in its dialects, read to a `Description`; loops are found here, closed elsewhere."""
