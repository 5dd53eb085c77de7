"""Robots as files, one writer per format; what a format cannot say is refused or noted by name."""
