"""How far a robot goes after the button: brakes, stops, space, studies, standards."""
