"""How far a robot goes after the button: nothing here is needed to load or simulate one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
