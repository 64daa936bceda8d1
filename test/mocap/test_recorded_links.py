import numpy as np
from marker_experiment import experiment, noisy, ur10

from dynid_ros.mocap.recorded_links import body_turns, link_turns


def test_bodies_turn_as_far_as_their_links():
    rng = np.random.default_rng(1)
    robot = ur10()
    e = experiment(rng, robot, frames=500, deflection=0.0, per_link=4)
    links = link_turns(robot, e.time, e.motor)
    for link in range(6):
        bodies = body_turns(e.time, noisy(rng, e.positions[:, 4 * link : 4 * link + 4], 0.05))
        known = np.isfinite(bodies)
        assert known.mean() > 0.5
        assert np.sqrt(np.mean((bodies - links[:, link])[known] ** 2)) < 0.01
