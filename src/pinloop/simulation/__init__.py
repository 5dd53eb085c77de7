"""Motion over time: modes, events, transitions, the loop over time, and what came out of it."""
