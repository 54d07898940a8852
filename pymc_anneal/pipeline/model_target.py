"""A compiled PyMC model as the target of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np
import pymc as pm
import xarray as xr

from pymc_anneal._version import __version__
from pymc_anneal.base.arguments import check_mapping
from pymc_anneal.base.data_hash import hash_data
from pymc_anneal.execution.fingerprint import describe_model
from pymc_anneal.model.compile import CompiledModel
from pymc_anneal.model.derivatives import FIRST_ORDER
from pymc_anneal.model.describe_priors import describe_priors
from pymc_anneal.paths.geometric import GeometricPath
from pymc_anneal.pipeline.reach_support import reach_support
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.results.container import dataset

_KNOWN_OPTIONS = {"log_likelihood", "prior", "coords", "dims"}


@dataclass(frozen=True)
class ModelTarget:
    """A compiled model, and the options of its container.

    Parameters
    ----------
    compiled : CompiledModel
    options : mapping
        ``idata_kwargs`` of :func:`sample_ais`: ``log_likelihood``, ``prior``, ``coords``, ``dims``.

    Raises
    ------
    TypeError, ValueError
        The options are no mapping, or one of them is unknown.
    """

    compiled: CompiledModel
    options: Mapping[str, Any] = field(default_factory=dict)
    log_reference: float = 0.0

    def __post_init__(self) -> None:
        check_mapping("idata_kwargs", self.options)
        for name in ("coords", "dims"):
            check_mapping(name, self.options.get(name))
        unknown = set(self.options) - _KNOWN_OPTIONS
        if unknown:
            raise ValueError(
                f"Unknown `idata_kwargs` {sorted(unknown)}; expected some of "
                f"{sorted(_KNOWN_OPTIONS)}. PyMC adds more: pm.compute_log_prior(idata, model=...)."
            )

    @property
    def scalars(self) -> Mapping[str, float]:
        """Log mass of a prior that a transform cuts, and its error; calls of black boxes."""
        return {
            "log_prior_mass": self.compiled.log_prior_mass,
            "log_prior_mass_mcse": self.compiled.log_prior_mass_mcse,
            **self._call_scalars,
        }

    @property
    def _call_scalars(self) -> dict[str, float]:
        calls = self.compiled.calls
        if not calls:
            return {}
        count = sum(c.count for c in calls)
        # An evaluation with a gradient calls the code of the value and that of the gradient.
        codes = 2 if self.compiled.derivatives.order == FIRST_ORDER else 1
        return {
            "calls": count,
            "call_failures": sum(c.failures for c in calls),
            "seconds_per_call": sum(c.seconds for c in calls) / max(count, 1),
            "seconds_per_evaluation": sum(c.seconds_per_point for c in calls) * codes,
        }

    @property
    def attrs(self) -> Mapping[str, str]:
        """Notes on the model, its priors, a hash of the data, versions, and what failed first."""
        first_error = "".join(calls.error for calls in self.compiled.calls)
        return {
            "notes": " ".join((*self.compiled.notes, *self.compiled.fallbacks)),
            "priors": describe_priors(self.compiled),
            "observed_data_hash": hash_data(self.compiled.observed_data()),
            "versions": f"pymc_anneal {__version__}, pymc {pm.__version__}, jax {jax.__version__}",
            **({"first_error": first_error} if first_error else {}),
        }

    def candidate(self) -> RunCandidate:
        """Return the run from the prior along the geometric path."""
        path = GeometricPath(self.compiled.log_terms)
        guide = partial(reach_support, self.compiled)
        return RunCandidate("prior", self.compiled.sample_prior, path, guide=guide)

    def explain_nan(self, position: np.ndarray) -> str:
        """Say which term of the model is NaN at a position of shape ``(d,)``."""
        return self.compiled.explain_nan(position)

    def fingerprint(self) -> dict[str, str]:
        """Describe variables, data, graph and values of the model."""
        return describe_model(self.compiled)

    def posterior(self, draws: np.ndarray) -> xr.Dataset:
        """Return the variables and deterministics of draws, shape ``(chains, draws, d)``."""
        values = self.compiled.constrain(_flatten(draws))
        return self.named(_by_chain(values, draws.shape[:2]))

    def named(
        self, values: Mapping[str, np.ndarray], leading: tuple[str, ...] = ("chain", "draw")
    ) -> xr.Dataset:
        """Return values with the model's coords and dims behind the leading dimensions."""
        coords, dims = self.compiled.coords_and_dims()
        coords = {**coords, **(self.options.get("coords") or {})}
        return dataset(values, leading, coords, {**dims, **(self.options.get("dims") or {})})

    def data_groups(self) -> dict[str, xr.Dataset]:
        """Return the groups ``observed_data`` and ``constant_data``."""
        return {
            "observed_data": self.named(self.compiled.observed_data(), ()),
            "constant_data": self.named(self.compiled.constant_data(), ()),
        }

    def extra_groups(
        self, draws: np.ndarray, seed: np.random.SeedSequence
    ) -> dict[str, xr.Dataset]:
        """Return the data, and on request the pointwise log likelihood and prior draws."""
        groups, shape = self.data_groups(), draws.shape[:2]
        if self.options.get("log_likelihood"):
            values = self.compiled.pointwise_log_likelihood(_flatten(draws))
            groups["log_likelihood"] = self.named(_by_chain(values, shape))
        if self.options.get("prior"):
            prior = self.compiled.sample_prior(seed, shape[0] * shape[1])
            groups["prior"] = self.named(_by_chain(self.compiled.constrain(prior), shape))
        return groups


def _flatten(draws: np.ndarray) -> np.ndarray:
    """Merge chains and draws; -1 would be ambiguous if there are no dimensions."""
    chains, count, ndim = draws.shape
    return draws.reshape(chains * count, ndim)


def _by_chain(values: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Split the leading axis of values into chains and draws."""
    return {name: v.reshape(*shape, *v.shape[1:]) for name, v in values.items()}
