"""Many stops: studies, worst cases, tables as vendors print them, separation, comparison, fit."""
