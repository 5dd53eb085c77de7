"""Equations on positions, velocities and accelerations; evaluated here, solved elsewhere."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
