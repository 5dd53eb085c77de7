"""Robots to look at: meshcat scenes, live or as one HTML file. Never steps, never solves."""
