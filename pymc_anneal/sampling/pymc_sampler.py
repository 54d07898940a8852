"""`ais`: `sample_ais` as an external sampler of `pymc.sample`.

PyMC plans ``pymc.sample(sampler=...)`` for objects that hold their settings and have a method
``sample_from_init``, called with keywords only, which ignores nothing in silence. This is such an
object; until a release of PyMC has that argument, the method can be called directly.
"""

import inspect

from typing import Any

from pymc_anneal.base.seeds import RandomSeed
from pymc_anneal.sampling.sample_ais import sample_ais

# Arguments that belong to the call of `pymc.sample`, and its default number of tuning steps, which
# it passes whether the user has set it or not.
_OF_THE_CALL = ("draws", "chains", "cores", "random_seed", "progressbar", "model")
_DEFAULT_TUNE = 1000


class ais:  # reads as a function: pymc.sample(sampler=pma.ais(target_mcse=0.05))
    """Annealed importance sampling as a sampler of :func:`pymc.sample`.

    Parameters
    ----------
    **settings
        Arguments of :func:`sample_ais` other than those of the call: draws, chains, cores,
        random_seed, progressbar and model.

    Raises
    ------
    TypeError
        A setting is none of `sample_ais`, or belongs to the call.

    Examples
    --------
    >>> sampler = pymc_anneal.ais(target_mcse=0.05)
    >>> idata = sampler.sample_from_init(model=model, draws=500, chains=4)
    """

    def __init__(self, **settings: Any) -> None:
        known = set(inspect.signature(sample_ais).parameters) - {"model_or_draws"}
        misplaced = sorted(set(settings) & set(_OF_THE_CALL))
        unknown = sorted(set(settings) - known)
        if misplaced:
            raise TypeError(f"{misplaced} belong to the call of the sampler, not to its settings.")
        if unknown:
            raise TypeError(f"{unknown} are not settings of sample_ais.")
        self.settings = settings

    def sample_from_init(
        self,
        *,
        model: Any = None,
        draws: int = 500,
        tune: int | None = None,
        chains: int = 4,
        cores: int | None = None,
        initvals: Any = None,
        random_seed: RandomSeed = None,
        progressbar: bool = True,
        **others: Any,
    ) -> Any:
        """Run `sample_ais`.

        Parameters
        ----------
        model, draws, chains, cores, random_seed, progressbar
            Arguments of :func:`sample_ais`.
        tune : int, optional
            Has to be None, 0 or the default of :func:`pymc.sample`: a pilot decides.
        initvals
            Has to be None: particles start at draws of the reference.
        **others
            Have to be None.

        Returns
        -------
        InferenceData or DataTree
            Result of :func:`sample_ais`.

        Raises
        ------
        TypeError
            An argument would be ignored.
        """
        given = {"initvals": initvals, **others}
        if tune not in (None, 0, _DEFAULT_TUNE):
            given["tune"] = tune
        ignored = sorted(name for name, value in given.items() if value is not None)
        if ignored:
            raise TypeError(
                f"Annealed importance sampling has no use for {ignored}: particles start at draws "
                "of a reference, and a pilot tunes. Leave them out."
            )
        return sample_ais(
            draws=draws,
            chains=chains,
            cores=cores,
            random_seed=random_seed,
            progressbar=progressbar,
            model=model,
            **self.settings,
        )
