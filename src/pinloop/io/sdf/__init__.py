"""SDF, the format of Gazebo, read to a `Description`: models, links, joints, included files."""
