"""The command line: one file per command, and what commands share; nothing is computed here."""
