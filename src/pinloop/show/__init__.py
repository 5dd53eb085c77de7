"""What can be seen: plots, 3-D scene, players, reports, terminal; nothing below imports it."""
