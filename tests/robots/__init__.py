"""Whole robots."""
