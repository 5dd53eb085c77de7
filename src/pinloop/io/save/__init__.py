"""A robot as files: URDF for the tree, a loops file for the rest; nothing is read here."""
