"""Seeds in words."""

import numpy as np
import pytest

from pymc_anneal.base.seeds import describe_seed, seed_sequence, spawned


@pytest.mark.parametrize("seed", [3, [1, 2], np.int64(5), None, np.random.SeedSequence(7)])
def test_a_description_gives_the_same_seed(seed: object) -> None:
    found = seed_sequence(seed)
    again = seed_sequence(eval(describe_seed(found)))
    assert found.generate_state(4).tolist() == again.generate_state(4).tolist()


def test_children() -> None:
    child = np.random.SeedSequence(7).spawn(3)[2]
    assert describe_seed(child) == "SeedSequence(7, spawn_key=(2,))"
    again = eval(describe_seed(child), {"SeedSequence": np.random.SeedSequence})
    assert child.generate_state(4).tolist() == again.generate_state(4).tolist()


def test_a_child_by_its_number() -> None:
    parent = np.random.SeedSequence(7)
    child = np.random.SeedSequence(7).spawn(3)[2]
    for _ in range(2):  # nothing is counted
        assert spawned(parent, 2).generate_state(4).tolist() == child.generate_state(4).tolist()
