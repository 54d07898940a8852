"""A restricted Boltzmann machine as the target of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np
import xarray as xr

from pymc_anneal._version import __version__
from pymc_anneal.adaptation.pilot import Pilot
from pymc_anneal.annealing.step_statistics import discrepancies
from pymc_anneal.base.contracts import Transition
from pymc_anneal.execution.blocks import StartDraws, even_block, make_blocks
from pymc_anneal.execution.fingerprint import describe
from pymc_anneal.pipeline.session import Session
from pymc_anneal.pipeline.target import RunCandidate
from pymc_anneal.rbm.exact import sample_exact
from pymc_anneal.rbm.model import RBM, reference_log_partition_function
from pymc_anneal.rbm.parameters import parameters_dataset
from pymc_anneal.rbm.paths import RBMPath
from pymc_anneal.results.container import dataset
from pymc_anneal.schedules.fixed import linear_schedule

# The pilot of Kiwaki (2015), section 7: particles and linear steps.
_PILOT_DRAWS, _PILOT_STEPS = 100, 1000


@dataclass(frozen=True)
class RBMTarget:
    """An RBM and its reference.

    Parameters
    ----------
    model : RBM
    reference : RBM
        An RBM with W = 0, whose partition function is known.
    """

    model: RBM
    reference: RBM
    scalars: Mapping[str, float] = field(default_factory=dict)

    @property
    def log_reference(self) -> float:
        """Log partition function of the reference, in nats."""
        return reference_log_partition_function(self.reference)

    @property
    def attrs(self) -> Mapping[str, str]:
        """Versions."""
        return {"versions": f"pymc_anneal {__version__}, jax {jax.__version__}"}

    def candidate(self, name: str, path: RBMPath, *, reverse: bool = False) -> RunCandidate:
        """Return the run along a path: from the reference, or from exact draws of the RBM.

        Parameters
        ----------
        name
            Name of the reference.
        path
        reverse
            Whether to start at the RBM.
        """
        target = self.draw_target if reverse else None
        return RunCandidate(name, self.draw_reference, path, draw_target=target)

    def draw_reference(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw visible units from the reference, shape ``(draws, n_visible)``."""
        return self.reference.sample(draws, steps=1, random_seed=seed)

    def draw_target(self, seed: np.random.SeedSequence, draws: int) -> np.ndarray:
        """Draw visible units from the RBM, exactly, shape ``(draws, n_visible)``."""
        return sample_exact(self.model, draws, seed)

    def explain_nan(self, position: np.ndarray) -> str:
        """Describe visible units at which the log density is NaN."""
        return (
            f"The log density of the RBM is NaN at {int(np.sum(position))} active visible units "
            f"of {len(position)}: its fields overflow in {self.model.weights.dtype}. Use weights "
            "in double precision, or smaller ones."
        )

    def fingerprint(self) -> dict[str, str]:
        """Describe the parameters of both RBMs."""
        return {
            "RBM": describe(jax.tree.leaves(self.model)),
            "reference": describe(jax.tree.leaves(self.reference)),
        }

    def posterior(self, draws: np.ndarray) -> xr.Dataset:
        """Return draws of shape ``(chains, draws, n_visible)`` as the variable ``visible``."""
        return dataset({"visible": draws.astype(np.int8)}, ("chain", "draw"))

    def extra_groups(
        self, draws: np.ndarray, seed: np.random.SeedSequence
    ) -> dict[str, xr.Dataset]:
        """Return the parameters of the RBM as the group ``constant_data``."""
        return {"constant_data": parameters_dataset(self.model)}


def run_linear_pilot(
    session: Session, candidate: RunCandidate, transition: Transition, seed: np.random.SeedSequence
) -> Pilot:
    """Measure the path by a short run with a linear schedule (Kiwaki 2015, section 7).

    Nothing is tuned and nothing resampled. Its estimate of log Z is not kept: its weights are too
    uneven for a comparison with the counted run.
    """
    chains, betas = session.settings.chains, linear_schedule(_PILOT_STEPS)
    draws = -(-_PILOT_DRAWS // chains)
    start = StartDraws(candidate.draw_reference, chains, draws * chains)
    m = even_block(draws, chains, session.settings.block_size)
    blocks = make_blocks(candidate.path, transition, betas, start, m, seed)
    run = session.anneal_fully("Pilot", blocks)
    return Pilot(
        betas=run.betas,
        discrepancy=discrepancies(run.stats, run.particles),
        log_reference_mass=0.0,
        transition=transition,
        tau=np.ones(run.steps),
        cost=np.ones(run.steps),
        accept_rate=run.stats.accept_rate.mean(axis=1),
        log_z=np.nan,
        position=run.position.reshape(run.particles, -1),
        ancestor=np.arange(run.particles),
        evaluations=run.evaluations,
    )
