"""Test the rotation rates of marker bodies and links."""

import numpy as np
from marker_experiment import add_noise, load_ur10, simulate_experiment

from dynid_ros.mocap.recorded_links import body_turns, link_turns


def test_bodies_rotate_like_their_links():
    rng = np.random.default_rng(1)
    robot = load_ur10()
    scene = simulate_experiment(rng, robot, frames=500, deflection=0.0, per_link=4)
    links = link_turns(robot, scene.time, scene.motor)
    for link in range(6):
        bodies = body_turns(scene.time, add_noise(rng, scene.positions[:, 4 * link : 4 * link + 4], 0.05))
        is_known = np.isfinite(bodies)
        assert is_known.mean() > 0.5
        assert np.sqrt(np.mean((bodies - links[:, link])[is_known] ** 2)) < 0.01
