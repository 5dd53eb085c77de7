"""Motion over time: modes, events, transitions, runs and what came out; nothing is drawn here."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
