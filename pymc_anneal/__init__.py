"""Bayesian model evidence for PyMC by annealed importance sampling.

Call first::

    idata = pymc_anneal.sample_ais(model)       # draws and weights
    pymc_anneal.log_evidence(idata)             # log evidence, error, verdict

Then, for models of the same data::

    pymc_anneal.compare({"a": idata_a, "b": idata_b})     # table of probabilities
    pymc_anneal.log_bayes_factor(idata_a, idata_b)        # two models
    pymc_anneal.report({"a": idata_a, "b": idata_b}, "report.html")

From posterior draws: ``bridge_evidence``, ``savage_dickey``, ``constraint_bayes_factor``,
``prior_sensitivity``, ``sample_bayes_factor``, ``update``. Many models: ``sample_models``,
``inclusion``, ``average``. Second opinions: ``compare_estimators``, ``nested_evidence``,
``calibrate``. Everything logarithmic is in nats.

A name loads the module that defines it when it is first used: `__init__.pyi` says which.
"""

import lazy_loader as _lazy_loader

from pymc_anneal._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
