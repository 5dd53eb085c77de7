"""Physics: closed forms, balances, and answers that may not depend on how one asks."""
