"""Closed configurations: the search for them, and rounded geometry made exact."""
