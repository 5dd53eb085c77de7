"""How far a robot goes after the button: nothing here is needed to load or simulate one."""
