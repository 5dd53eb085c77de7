"""What can be seen: plots, 3-D scene, players, reports, terminal. Nothing below imports it."""
