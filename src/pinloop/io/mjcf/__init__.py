"""MJCF, the XML of MuJoCo, read to a `Description`; what the others read is not known here."""
