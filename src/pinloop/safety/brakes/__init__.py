"""Data of brakes, gears and drives: values, files, and estimates where there are none."""
