"""What several examples share. Nothing here is a program of its own."""
