"""`Target`: a model made of functions, for those who have no PyMC model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import jax
import numpy as np
import pymc as pm

from pymc_anneal.base.arguments import check_count
from pymc_anneal.base.double_precision import double_precision
from pymc_anneal.model.functions import (
    Function,
    SamplePrior,
    add_prior,
    add_unit_cube,
    as_jax,
    as_op,
)
from pymc_anneal.pipeline.check_reference import check_agreement

# Draws that show the dimension of a prior.
_TRIED = 4


class Target(pm.Model):  # type: ignore[misc]  # mypy does not see PyMC
    """A PyMC model made of functions; see `from_functions`.

    Everything of this package that takes a model takes it.
    """

    likelihood_potential = "log_likelihood"

    @classmethod
    @double_precision
    def from_functions(
        cls,
        log_likelihood: Function,
        *,
        log_prior: Function | None = None,
        sample_prior: SamplePrior | None = None,
        prior_transform: Function | None = None,
        ndim: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Target":
        """Make a model of a log likelihood and a prior, given as functions.

        The prior is given either by `log_prior` and `sample_prior`, or by `prior_transform` and
        `ndim`, as nested samplers take it. Functions that JAX can trace keep their gradients;
        others are called back, a point at a time, and move by random walks.

        Parameters
        ----------
        log_likelihood : callable
            From parameters, shape ``(d,)``, to the log likelihood, a number in nats; -inf where it
            is zero.
        log_prior : callable
            From parameters, shape ``(d,)``, to the log density of the prior, in nats, with its
            normalising constant.
        sample_prior : callable
            From a :class:`numpy.random.Generator` and a number ``n`` to ``n`` independent draws of
            the prior, shape ``(n, d)``.
        prior_transform : callable
            From a point of the unit cube, shape ``(d,)``, to parameters, shape ``(d,)``: the
            inverse distribution functions of the prior.
        ndim : int
            Number ``d`` of parameters; with `sample_prior` its draws show it.
        names : sequence of str, optional
            Names of the parameters, the coordinates of ``theta`` in results.

        Returns
        -------
        Target
            A :class:`pymc.Model` with the parameters as ``theta``.

        Raises
        ------
        TypeError
            The prior is given twice, or by halves.
        ValueError
            A function returns the wrong shape; or `log_prior` is not the normalised density of the
            draws of `sample_prior`.

        Examples
        --------
        >>> target = pymc_anneal.Target.from_functions(
        ...     log_likelihood, prior_transform=prior_transform, ndim=3
        ... )
        >>> idata = pymc_anneal.sample_ais(target)
        """
        if prior_transform is not None and log_prior is None and sample_prior is None:
            prior, start = _by_transform(prior_transform, ndim)
        elif prior_transform is None and log_prior is not None and sample_prior is not None:
            prior, start = _by_density(log_prior, sample_prior, ndim)
        else:
            raise TypeError(
                "The prior is given by `prior_transform` and `ndim`, or by `log_prior` and "
                "`sample_prior`, its density and its draws: pass one of these pairs."
            )
        size = len(start)
        _check_names(names, size)
        _check_shape("log_likelihood", np.asarray(log_likelihood(start)), ())
        coords = {"parameter": list(names or map(str, range(size)))}
        with cls(model=None, coords=coords) as model:
            likelihood = as_op(log_likelihood, size)(prior(size, "parameter"))
            pm.Potential(cls.likelihood_potential, likelihood)
        return cast("Target", model)


# From a number of parameters and a name of their dimension to the parameters.
_AddPrior: TypeAlias = Callable[[int, str], Any]


def _by_transform(prior_transform: Function, ndim: int | None) -> tuple[_AddPrior, np.ndarray]:
    """Return what adds a prior to a model, and the median of each parameter."""
    check_count("ndim", ndim, "the number of parameters")
    assert ndim is not None
    start = np.asarray(prior_transform(np.full(ndim, 0.5)), dtype=float)
    _check_shape("prior_transform", start, (ndim,))
    return partial(add_unit_cube, prior_transform), start


def _by_density(
    log_prior: Function, sample_prior: SamplePrior, ndim: int | None
) -> tuple[_AddPrior, np.ndarray]:
    """Return what adds a prior to a model, and a draw of it."""
    size, start = _dimension(sample_prior, np.random.default_rng(0), ndim)
    _check_shape("log_prior", np.asarray(log_prior(start)), ())
    _check_prior(log_prior, sample_prior, size)
    return partial(add_prior, log_prior, sample_prior), start


def _dimension(
    sample_prior: SamplePrior, rng: np.random.Generator, ndim: int | None
) -> tuple[int, np.ndarray]:
    """Return the dimension of the draws of a prior, and one of them."""
    draws = np.asarray(sample_prior(rng, _TRIED), dtype=float)
    expected = f"({_TRIED}, {'d' if ndim is None else ndim})"
    if draws.ndim != 2 or len(draws) != _TRIED or ndim not in (None, draws.shape[1]):
        raise ValueError(
            f"`sample_prior(rng, {_TRIED})` returned an array of shape {draws.shape}, expected "
            f"{expected}: a draw in each row."
        )
    return draws.shape[1], draws[0]


def _check_shape(name: str, value: np.ndarray, shape: tuple[int, ...]) -> None:
    if value.shape != shape:
        kind = "a number" if shape == () else f"an array of shape {shape}"
        raise ValueError(
            f"`{name}` returned an array of shape {value.shape} for one point, expected {kind}."
        )


def _check_names(names: Sequence[str] | None, ndim: int) -> None:
    if names is not None and len(names) != ndim:
        raise ValueError(f"There are {len(names)} `names` for {ndim} parameters.")


@dataclass(frozen=True)
class _Prior:
    """A prior of the user as a `Reference`, so that its density and draws are compared."""

    function: Function
    draws: SamplePrior

    def log_density(self, position: Any) -> jax.Array:
        """Return the log density in nats, shape ``(n,)``."""
        return cast("jax.Array", jax.vmap(self.function)(position))

    def sample(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw from the prior, shape ``(draws, d)``."""
        return self.draws(np.random.default_rng(seed), draws)


def _check_prior(log_prior: Function, sample_prior: SamplePrior, ndim: int) -> None:
    """Raise unless `log_prior` is the normalised density of the draws."""
    try:
        check_agreement(_Prior(as_jax(log_prior, ndim), sample_prior), ndim)
    except ValueError as error:
        found = str(error).removeprefix("`reference`: ").replace("of _Prior ", "")
        raise ValueError(f"`log_prior` and `sample_prior` do not match: {found}") from error
