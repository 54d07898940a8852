"""Rows of pooled families from draws of known continuous distributions.

With ``F`` the distribution, ``z = Phi^-1(F(x))`` is standard normal whatever the tails of ``x``:
its mean is zero and its variance one, and the two estimates are uncorrelated.
"""

import numpy as np

from scipy import stats

from tests.pooled import Family, family


def normal_scores(x: np.ndarray, law) -> np.ndarray:
    """Return ``Phi^-1(F(x))``, from whichever tail is exact."""
    lower, upper = law.cdf(x), law.sf(x)
    return np.where(lower < upper, stats.norm.ppf(lower), stats.norm.isf(upper))


class ScoreRows:
    """Rows of two families, of the means and of the variances of the normal scores of draws.

    Parameters
    ----------
    kind : str
        ``"prior"`` or ``"posterior"``.
    wider : float
        Factor of the scores, for the wrong twin.
    """

    def __init__(self, kind: str, wider: float = 1.0):
        self.kind, self.wider = kind, wider
        self._rows: dict[str, dict[str, tuple[float, float, float]]] = {"mean": {}, "variance": {}}

    def add(self, name: str, x: np.ndarray, law) -> None:
        """Add draws of any shape.

        Equal draws are copies of one particle, which is counted once, by its share ``c_i / n``. The
        error of a share-weighted mean of ``h`` is ``(sum_i (c_i / n)^2 (h_i - E h)^2)^(1/2)``, in
        which the spread of the shares counts both their weights and the rounding of a resampling.
        """
        value, copies = np.unique(x, return_counts=True)
        z, share = self.wider * normal_scores(value, law), copies / copies.sum()
        for moment, h, exact in (("mean", z, 0.0), ("variance", z**2, 1.0)):
            error = np.sqrt(share**2 @ (h - exact) ** 2)
            self._rows[moment][name] = float(share @ h), exact, float(error)

    @property
    def means(self) -> Family:
        """The means, in standard deviations."""
        return family(f"draws: {self.kind} means", self._rows["mean"])

    @property
    def variances(self) -> Family:
        """The variances, relative to the exact ones."""
        return family(f"draws: {self.kind} variances", self._rows["variance"])
