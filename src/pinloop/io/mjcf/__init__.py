"""MJCF, the XML of MuJoCo: bodies, meshes, defaults, equality constraints and actuators."""
