"""Many stops: cases, sampling, running, worst cases; how one stops is not known here."""
