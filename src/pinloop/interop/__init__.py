"""Robots for other libraries: Pinocchio's own constraint models."""
