"""URDF with its dialects: links, joints, drives, shapes and loops."""
