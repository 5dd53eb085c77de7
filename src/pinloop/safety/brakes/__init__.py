"""Data of brakes, gears and drives, with their sources; nothing here moves."""
