"""Tests of pinloop: one module per module of the package."""
