"""Pseudo-priors: normalised, drawn as they are evaluated, with tails that bound the weights."""

import numpy as np
import pytest

from scipy import integrate, stats

from pymc_anneal.between.pseudo_priors import draw_heavy, draw_light, log_heavy, log_light

PAIRS = {"heavy": (draw_heavy, log_heavy), "light": (draw_light, log_light)}


@pytest.mark.parametrize("name", PAIRS)
def test_draws_follow_the_density(name: str) -> None:
    draw, log_density = PAIRS[name]

    def density(z: float) -> float:
        return float(np.exp(log_density(np.array([z]))))

    assert 2 * integrate.quad(density, 0, np.inf)[0] == pytest.approx(1, abs=1e-6)
    draws = draw(np.random.default_rng(1), (1_000_000, 4)).ravel()
    ends = np.linspace(-2, 2, 9)
    mass = [integrate.quad(density, -np.inf, end)[0] for end in ends]
    shares = np.array([(draws < end).mean() for end in ends])
    error = np.sqrt(np.array(mass) * (1 - np.array(mass)) / len(draws))
    assert (np.abs(shares - mass) < 4 * error).all()
    # The twin: normal draws have neither of these shares.
    normal = stats.norm.cdf(ends)
    assert np.abs(normal - mass).max() > 0.01


def test_coordinates_are_summed() -> None:
    z = np.array([0.5, -1.0])
    assert log_light(z) == pytest.approx(sum(float(log_light(z[i : i + 1])) for i in range(2)))
    assert float(log_light(np.zeros(0))) == 0


def test_weights_of_a_normal_posterior_are_bounded() -> None:
    z = np.linspace(-30, 30, 601)
    light, heavy = (np.array([float(f(np.array([x]))) for x in z]) for f in (log_light, log_heavy))
    log_normal = stats.norm.logpdf(z)
    assert (light - log_normal).max() < 0.5
    assert (log_normal - heavy).max() < 0.5
    # Not the other way round.
    assert (log_normal - light).max() > 100
    assert (heavy - log_normal).max() > 100
