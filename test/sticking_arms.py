"""Simulate recordings at rest of arms with stiction: gravity by Pinocchio, friction beyond the model of the package."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from pinocchio_arm import PinocchioArm

from dynid_ros.identification.static_samples import SampleRules, Samples, side_of_approach
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.recording import Recording

RATE = 50.0
"""Sampling rate in Hz."""
MOVE, DWELL = 0.4, 0.5
"""Durations of a move and of a dwell in s."""
STEPS = 12
"""Number of angles of each joint."""
COARSE = 6
"""Number of positions of a move if only its rest is used."""
DETOUR = 0.05
"""Distance of an approach in rad."""
REACH = 2.8
"""Largest absolute joint angle in rad."""


@dataclass(frozen=True)
class Friction:
    """Friction of n joints; values without a unit are relative to each joint's largest gravity torque.

    Attributes:
        coulomb: (n,) Coulomb friction in N m.
        ripple: ripple of Coulomb friction over the angle, equal in both directions.
        own_ripple: ripple that differs between the directions.
        asymmetry: difference of the directions.
        load: growth with the gravity torque.
        scatter: variation of the level between motions.
        share: (n,) fraction of a load change that a held joint's stiction takes until it slips.
    """

    coulomb: np.ndarray
    share: np.ndarray
    ripple: float = 0.0
    own_ripple: float = 0.0
    asymmetry: float = 0.0
    load: float = 0.0
    scatter: float = 0.0


@dataclass(frozen=True)
class StickingArm:
    """Arm of a URDF in Pinocchio."""

    robot: RobotModel

    @cached_property
    def pinocchio(self) -> PinocchioArm:
        return PinocchioArm(self.robot.urdf, self.robot.joint_names, self.robot.gravity)

    @cached_property
    def truth(self) -> np.ndarray:
        """Return the true moments (k,), NaN for unidentifiable ones."""
        gravity = GravityModel(self.robot)
        moments = gravity.project(self.robot.parameters)
        for i in np.flatnonzero(gravity.unobservable_axes()):
            moments[gravity.columns(i)] = np.nan
        return moments

    @cached_property
    def largest(self) -> np.ndarray:
        """Return the largest gravity torque (n,), or a third of the arm's largest for a joint without gravity."""
        poses = np.random.default_rng(0).uniform(*self.reach, (300, self.robot.n_joints))
        found = np.abs([self.pinocchio.gravity_torque(pose) for pose in poses]).max(axis=0)
        return np.where(found > 1e-3 * found.max(), found, found.max() / 3)

    @cached_property
    def reach(self) -> np.ndarray:
        """Return the range (2, n) of each joint."""
        limits = self.robot.limits
        return np.array([np.maximum(limits.lower, -REACH), np.minimum(limits.upper, REACH)])

    def friction(self, rng: np.random.Generator, level: float | None = None, *, lacking: bool = True) -> Friction:
        """Draw Coulomb friction of `level` (default 1 to 5 %) of the largest torque, and unmodeled friction."""
        n = self.robot.n_joints
        coulomb = self.largest * (rng.uniform(0.01, 0.05, n) if level is None else level)
        share = rng.uniform(0.1, 0.9, n)
        if not lacking:
            return Friction(coulomb, share)
        return Friction(
            coulomb,
            share,
            ripple=rng.uniform(0.0, 0.1),
            own_ripple=rng.uniform(0.0, 0.03),
            asymmetry=rng.uniform(0.0, 0.1),
            load=rng.uniform(0.0, 0.04),
            scatter=rng.uniform(0.0, 0.1),
        )

    def holds(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return poses (count, n) away from the limits."""
        low, high = self.reach
        return rng.uniform(low + 0.1 * (high - low), high - 0.1 * (high - low), (count, self.robot.n_joints))

    def one_by_one(self, holds: np.ndarray) -> "Way":
        """Move each joint alone through its range and back at each of the hold poses (P, n)."""
        way = Way.empty(self.robot.n_joints)
        for hold in holds:
            for joint, angle, side in self._turns():
                pose = np.where(np.arange(len(hold)) == joint, angle, hold)
                # approach the first angles from the same side as the others
                way.add(pose - side * DETOUR * (np.arange(len(hold)) == joint), pose)
        return way

    def approached(self, holds: np.ndarray) -> "Way":
        """Move as in `one_by_one`, but approach rests with all joints, from below on the way up and vice versa."""
        way = Way.empty(self.robot.n_joints)
        for hold in holds:
            for joint, angle, side in self._turns():
                pose = np.where(np.arange(len(hold)) == joint, angle, hold)
                way.add(pose - side * DETOUR, pose)
        return way

    def both_sides(self, poses: np.ndarray) -> "Way":
        """Approach each of the poses (P, n) with all joints from below, then from above."""
        way = Way.empty(self.robot.n_joints)
        for pose in poses:
            for side in (1, -1):
                way.add(pose - side * DETOUR, pose)
        return way

    def straight(self, poses: np.ndarray) -> "Way":
        """Move from pose to pose (P, n), with random sides of approach."""
        way = Way.empty(self.robot.n_joints)
        for pose in poses:
            way.add(pose)
        return way

    def _turns(self) -> Iterator[tuple[int, float, int]]:
        for joint in range(self.robot.n_joints):
            angles = np.linspace(*self.reach[:, joint], STEPS)
            yield from ((joint, angle, 1) for angle in angles)
            yield from ((joint, angle, -1) for angle in angles[::-1])

    def record(self, way: "Way", friction: Friction, rng: np.random.Generator, noise: float = 0.003) -> Recording:
        """Simulate a recording with white noise relative to the largest torque and offsets of up to 2 % of it."""
        commanded, _ = way.path(int(MOVE * RATE), int(DWELL * RATE))
        position, torque = self._sensed(commanded, friction, rng, noise)
        unknown = np.full_like(position, np.nan)
        time = np.arange(len(commanded)) / RATE
        return Recording(self.robot.joint_names, time, position, unknown, torque, source="simulated")

    def samples(self, way: "Way", friction: Friction, rng: np.random.Generator, noise: float = 0.001) -> Samples:
        """Return static samples of such a recording efficiently; `noise` is that of their means."""
        commanded, rests = way.path(COARSE, 1)
        position, torque = self._sensed(commanded, friction, rng, noise)
        direction = np.zeros((len(rests), position.shape[1]))
        for k, (before, rest) in enumerate(pairwise([0, *rests])):
            direction[k] = side_of_approach(commanded[before:rest], commanded[rest], SampleRules.minimum_approach)
        ones = np.ones(len(rests))
        still = np.zeros_like(direction)
        return Samples(position[rests], still, torque[rests], direction, ones > 0, np.cumsum(ones), 0 * rests)

    def _sensed(self, commanded: np.ndarray, friction: Friction, rng: np.random.Generator, noise: float) -> tuple:
        position, torque = self._stick(commanded, friction, rng)
        torque += self.largest * rng.uniform(-0.02, 0.02, len(self.largest))
        torque += self.largest * noise * rng.standard_normal(torque.shape)
        return position + 1e-5 * rng.standard_normal(position.shape), torque

    def _stick(self, commanded: np.ndarray, friction: Friction, rng: np.random.Generator) -> tuple:
        """Return position and motor torque (N, n) of stiff servos with joints that stick like springs.

        A servo of stiffness K applies K (q_c - q) = G + z with gravity G and friction z. While z sticks it grows by
        s dq, so dz = share (K dq_c - dG) with share = s / (s + K); it slips at the bound for the direction.
        """
        n = commanded.shape[1]
        stiffness = friction.coulomb / 5e-4
        harmonic = rng.integers(1, 9, (3, n))
        phase = rng.uniform(0, 2 * np.pi, (3, n))
        size = rng.uniform(0.5, 1.0, n)
        asymmetry = friction.asymmetry * rng.uniform(-1, 1, n)
        scatter = np.ones(n)
        gravity = self.pinocchio.gravity_torque
        load = gravity(commanded[0])
        stick = friction.coulomb * rng.uniform(-1, 1, n)
        positions = np.empty_like(commanded)
        torques = np.empty_like(commanded)
        resting = np.ones(n, bool)
        before = commanded[0]
        for k, target in enumerate(commanded):
            moving = target != before
            if not moving.any() and k:
                positions[k] = positions[k - 1]
                torques[k] = torques[k - 1]
                resting = ~moving
                continue
            begins = moving & resting
            scatter[begins] = 1 + friction.scatter * rng.standard_normal(n)[begins]
            resting = ~moving
            new = gravity(target)
            wave = np.sin(harmonic * target + phase)
            level = friction.coulomb * (1 + size * friction.ripple * wave[0]) * scatter + friction.load * np.abs(new)
            upper = level + friction.coulomb * (asymmetry + friction.own_ripple * wave[1])
            lower = level - friction.coulomb * (asymmetry + friction.own_ripple * wave[2])
            stick = stick + friction.share * (stiffness * (target - before) - (new - load))
            stick = np.clip(stick, -lower, upper)
            positions[k] = target - stick / stiffness
            torques[k] = gravity(positions[k]) + stick
            load = new
            before = target
        return positions, torques


@dataclass
class Way:
    """Waypoints (n,) of a motion with rests at some of them."""

    points: list[np.ndarray]
    rests: list[bool]

    @classmethod
    def empty(cls, n_joints: int) -> "Way":
        """Return a motion without waypoints, starting at zero."""
        return cls([np.zeros(n_joints)], [True])

    def add(self, *points: np.ndarray) -> None:
        """Append points with a rest at the last one."""
        self.points += points
        self.rests += [False] * (len(points) - 1) + [True]

    def path(self, move: int, dwell: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (N, n), `move` per minimum-jerk segment, and a mask (M,) of ends of dwells."""
        s = np.arange(1, move + 1) / move
        smooth = (s**3 * (10 - 15 * s + 6 * s**2))[:, None]
        parts = [self.points[0][None]]
        rests = []
        count = 1
        for before, after, rest in zip(self.points[:-1], self.points[1:], self.rests[1:], strict=True):
            parts += [before + smooth * (after - before), np.tile(after, (dwell * rest, 1))]
            count += move + dwell * rest
            rests += [count - 1] * rest
        return np.concatenate(parts), np.array(rests)
