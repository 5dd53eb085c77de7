"""Motion over time: modes, events, transitions, runs and what came out; nothing is drawn here."""
