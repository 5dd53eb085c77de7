"""Numbers that the papers print."""
