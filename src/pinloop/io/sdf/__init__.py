"""SDF, the format of Gazebo: models, links, joints, frames and included files."""
