"""Robot files in and out: one reader per format, each to a `Description`; no robot is moved."""
