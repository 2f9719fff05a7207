"""Pointillist: stochastic convolutional sparse coding for images, signals and volumes.

The public names stand in ``__init__.pyi``. They are imported when they are first used, so that ``import pointillist`` and
``pointillist --help`` stay quick.
"""

from importlib.metadata import version as _version

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__version__ = _version("pointillist")
