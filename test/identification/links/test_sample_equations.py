"""Samples as equations: any number in flat memory, and nothing that is not a number."""

import tracemalloc

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, rigid_torque

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.identification.equations import SampleEquations
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

FRICTION = JointFriction(offset=True, smoothing=0.02)


def samples(size: int) -> list[np.ndarray]:
    motion = Fourier(3, size=0.5)(np.arange(size) / 50)
    return [*motion, rigid_torque(chain(), *motion) + Drive().torque(*motion[1:])]


def test_equations_are_those_of_the_samples_in_their_order():
    given = samples(2000)
    columns = LinkColumns(chain(), [(FRICTION,)] * 3)
    equations = SampleEquations(chain(), *given)
    blocks = list(equations.blocks(columns))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([block.torque for block in blocks]), given[3])
    np.testing.assert_array_equal(np.concatenate([block.time for block in blocks]), np.arange(2000))
    np.testing.assert_allclose(equations.speed_rms, np.sqrt(np.mean(given[1] ** 2, axis=0)))
    truth = np.zeros(columns.size)
    truth[columns.chosen([0, 0, 0])] = [*columns.base.project(chain().parameters), *np.tile([1.0, 0.5, 0.2], 3)]
    for block in blocks:
        for j, (rows, own) in enumerate(zip(block.rows, columns.of_joint, strict=True)):
            np.testing.assert_allclose(rows @ truth[own], block.torque[:, j], atol=1e-8)


@pytest.mark.parametrize("name", ["q", "qd", "qdd", "torque"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_none(name, value):
    given = dict(zip(("q", "qd", "qdd", "torque"), samples(2000), strict=True))
    given[name] = given[name].copy()
    given[name][1503, 1] = value
    with pytest.raises(IdentificationError, match=f"{name} of joint_2 is {value} in sample 1503"):
        SampleEquations(chain(), **given)


def test_shapes_that_do_not_fit():
    q, qd, qdd, torque = samples(50)
    with pytest.raises(IdentificationError, match="q has no samples"):
        SampleEquations(chain(), q[:0], qd[:0], qdd[:0], torque[:0])
    with pytest.raises(ModelError, match=r"qd has shape \(50, 2\)"):
        SampleEquations(chain(), q, qd[:, :2], qdd, torque)
    with pytest.raises(ModelError, match=r"torque has shape \(49, 3\)"):
        SampleEquations(chain(), q, qd, qdd, torque[:-1])


def test_memory_does_not_grow_with_the_number_of_samples():
    columns = LinkColumns(chain(), [(FRICTION,)] * 3)
    peaks = []
    for size in (10_000, 50_000):
        q, qd, qdd = Fourier(3, size=0.5)(np.arange(size) / 1000)
        torque = np.cos(q)
        tracemalloc.start()
        factors = SampleEquations(chain(), q, qd, qdd, torque).factors(columns)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert factors.counts.sum() == size
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 20e6
