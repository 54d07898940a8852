"""Bayesian model evidence for PyMC by annealed importance sampling.

A name loads the module that defines it when it is first used: `__init__.pyi` says which.
"""

import lazy_loader as _lazy_loader

from pymc_anneal._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
