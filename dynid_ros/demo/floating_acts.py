"""First two acts of the demo: the arm floats on identified gravity, then a hand leads it and leaves it elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from geometry_msgs.msg import WrenchStamped
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from rclpy.node import Node

from dynid_ros.demo.arm import DemoArm
from dynid_ros.demo.drop_test import (
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    DropPicture,
    DropTest,
    SideView,
    prepare_axes,
    write_drop_picture,
)
from dynid_ros.demo.page import Act
from dynid_ros.demo.stage import COMPUTING_TIMEOUT_S, Stage, say
from dynid_ros.errors import DynidError
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.rehearsal.truth_comparison import Check, compare_gravity
from dynid_ros.report.drawing import LIGHT, draw_stick, label_axes, plot_area, svg
from dynid_ros.simulation import ArmTruth, tabled_arm

N_FRESH_POSES = 100
MAX_TORQUE_ERROR_PERCENT = 0.5
"""RMS over the fresh poses, in per cent of the largest gravity torque of each joint."""
MAX_DRIFT_PERCENT = 2.0
"""Drift with compensation, in per cent of the drift without."""
GRAVITY_MOTION = {"motion": "poses", "target": "gravity", "count": 8, "dwell": 0.8, "approach": [0.03]}
GRAVITY_STORY = (
    "The arm is let go, its motors off: it falls. Then it moves to a few poses, to each from below and from above, and "
    "dwells there. The torque of the motors then is gravity; friction has the opposite sign from the other side, and "
    "cancels. The gravity parameters follow.",
    "The arm is let go again. Now its motors apply the gravity torque that the identified model computes from the "
    "joint angles, and nothing else: it floats.",
)


def gravity_act(stage: Stage) -> None:
    """Play the act."""
    arm = stage.arm
    settings = stage.settings
    folder = stage.output / "gravity"
    stage.announce("Without compensation: the arm is let go.")
    arm.move(settings.drop_pose)
    sagging = arm.drop(settings.drop_time)
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: the arm moves to a few poses, to each from both sides.")
    stage.excitation.record()
    stage.announce("Gravity is identified from the bag.")
    say(stage.call.trigger("/gravity_identification/identify", timeout=COMPUTING_TIMEOUT_S))
    stage.announce("With compensation: the arm is let go again.")
    with arm.compensation():
        arm.move(settings.drop_pose)
        floating = arm.drop(settings.drop_time)
    truth = tabled_arm(stage.truth()).truth
    stage.judge_later(
        "gravity", lambda: judge_gravity(arm.robot, truth, folder, DropTest.from_tracks(sagging, floating))
    )


def judge_gravity(robot: RobotModel, truth: ArmTruth, folder: Path, test: DropTest) -> Act:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo, and write `drop.png` there."""
    model = IdentifiedGravity(robot, load_identified(folder / "identified.yaml"))
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    poses = np.random.default_rng(2026).uniform(lower, upper, (N_FRESH_POSES, robot.n_joints))
    true_torque = truth.gravity_torque(poses)
    torque = model.sensor_torque(poses) - np.nan_to_num(model.offset)
    largest = np.abs(true_torque).max(axis=0)
    is_loaded = largest > 1e-9 * largest.max()
    error = np.sqrt(np.mean((torque - true_torque) ** 2, axis=0))[is_loaded] / largest[is_loaded]
    drift_without, drift = (np.rad2deg(angle.max()) for angle in (test.drift_without, test.drift_compensated))
    write_drop_picture(folder / "drop.png", robot, test)
    picture = DropPicture(robot, test)
    later = f"{test.duration:.0f} s later"
    return Act(
        "Gravity: the arm floats",
        GRAVITY_STORY,
        [
            Check(
                f"Gravity torque in {N_FRESH_POSES} fresh poses, worst joint: RMS error over the largest torque",
                100 * float(error.max()),
                MAX_TORQUE_ERROR_PERCENT,
                "%",
            ),
            Check(
                f"Drift of {drift:.2f}° with compensation over {drift_without:.1f}° without, in {test.duration:.0f} s",
                100 * float(drift / drift_without),
                MAX_DRIFT_PERCENT,
                "%",
            ),
        ],
        compare_gravity(model, truth),
        {
            f"Without compensation the arm falls. Grey: let go, orange: {later}": picture.svg("without"),
            f"With the identified gravity it floats. Blue: {later}": picture.svg("with"),
        },
        [("the report of the identification", "gravity/report.html")],
    )


PUSH_TOPIC = "/simulator/push"
PUSH_RATE_HZ = 50.0
HAND_SPEED_M_S = 0.2
STIFFNESS_N_M = 600.0
DAMPING_N_S_M = 80.0
MAX_FORCE_N = 60.0
HOLD_TIME_S = 0.6
"""Time for which the hand holds the arm at the end of a lead."""
MAX_STATE_AGE_S = 0.1
"""Largest age of a joint state that the hand pulls by."""
MAX_WAIT_S = 120.0


def link_origins(robot: RobotModel, link: str, position: NDArray) -> NDArray:
    """Return the origin of a link in the base frame (T, 3), m, for positions (T, n)."""
    return robot.forward_kinematics(position)[:, robot.link_names.index(link), :3, 3]


class Hand:
    """Pulls a link along; the nodes perceive only the motion of the arm.

    Args:
        arm: arm, which must be listened to.
        link: link that is held at the origin of its frame; the simulator has it as its parameter `push_link`.

    Attributes:
        forces: stamps, s, and sizes of the force, N.
        leads: stamps of start and end of each lead, s.
    """

    def __init__(self, node: Node, arm: DemoArm, link: str) -> None:
        self._node = node
        self._arm = arm
        self._link = link
        self._publisher = node.create_publisher(WrenchStamped, PUSH_TOPIC, 10)
        self.forces: list[tuple[float, float]] = []
        self.leads: list[tuple[float, float]] = []

    def lead(self, displacement: Sequence[float]) -> None:
        """Lead the link by a displacement (3,) in the base frame, m, and let go."""
        start = place = self._link_origin()
        target = np.asarray(displacement, float)
        duration = float(np.linalg.norm(target)) / HAND_SPEED_M_S
        first = self._arm.track[-1][0]
        elapsed = 0.0
        before = time.monotonic()
        deadline = before + MAX_WAIT_S
        while elapsed < duration + HOLD_TIME_S:
            self._arm.wait(before + 1.0 / PUSH_RATE_HZ - time.monotonic())
            last = place
            place = self._link_origin()
            now = time.monotonic()
            step = now - before
            before = now
            if self._state_age() > MAX_STATE_AGE_S:
                self._pull(np.zeros(3))
                if now > deadline:
                    raise DynidError("joint states come too late for a hand to lead the arm; the machine is too busy")
                continue
            elapsed += min(step, MAX_STATE_AGE_S)
            hand = start + target * min(elapsed / duration, 1.0)
            force = STIFFNESS_N_M * (hand - place) - DAMPING_N_S_M * (place - last) / step
            self._pull(force * min(1.0, MAX_FORCE_N / max(float(np.linalg.norm(force)), 1e-9)))
        self._pull(np.zeros(3))
        self.leads.append((first, self._arm.track[-1][0]))

    def _state_age(self) -> float:
        """Return the age of the last joint state, s."""
        return self._node.get_clock().now().nanoseconds * 1e-9 - self._arm.track[-1][0]

    def _link_origin(self) -> NDArray:
        return link_origins(self._arm.robot, self._link, np.array([self._arm.track[-1][1]]))[0]

    def _pull(self, force: NDArray) -> None:
        message = WrenchStamped()
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force.tolist()
        self._publisher.publish(message)
        self.forces.append((self._arm.track[-1][0], float(np.linalg.norm(force))))


FORCE_HEIGHT = 80
MIN_LEAD_CM = 15.0
MAX_DRIFT_MM = 5.0
WATCH_TIME_S = 2.0
MIN_WATCH_TIME_S = 1.9
CM_PER_M = 100.0
MM_PER_M = 1000.0
LEADS = ([0.0, 0.2, 0.15], [-0.1, -0.15, 0.15])
"""Displacements of the wrist by the hand, one after the other, in the base frame, m."""
HELD_LINK = "link_5"
"""Link whose origin is where the axes of the wrist meet: a push there does not turn the wrist's joints."""
GUIDING_STORY = (
    "The arm floats, and a hand takes it by the wrist. No node knows of the hand: the motors apply the gravity torque "
    "of the present pose, and the arm follows. The hand overcomes only friction and inertia.",
    "Where the hand lets go, the arm stays.",
)


@dataclass(frozen=True)
class GuidedMotion:
    """Motion of an arm under gravity compensation, and the hand.

    Attributes:
        link: link that the hand holds at the origin of its frame.
        time: (T,) s.
        position: (T, n) of the joints, rad or m.
        force: (T,) size of the force of the hand, N.
        leads: start and end of each lead, s; after its end the hand lets go.
    """

    robot: RobotModel
    link: str
    time: NDArray
    position: NDArray
    force: NDArray
    leads: Sequence[tuple[float, float]]

    @property
    def held(self) -> NDArray:
        """(T, 3) place that the hand holds, m."""
        return link_origins(self.robot, self.link, self.position)

    @property
    def distances(self) -> NDArray:
        """Displacement of the held place by each lead, m."""
        held = self.held
        rows = [np.searchsorted(self.time, lead).clip(0, len(self.time) - 1) for lead in self.leads]
        return np.array([np.linalg.norm(held[end] - held[start]) for start, end in rows])

    @property
    def drifts(self) -> NDArray:
        """Largest distance of the held place from where it was left, after each lead, m."""
        held = self.held
        return np.array([np.linalg.norm(held[rows] - held[rows.start], axis=1).max() for rows in self.rests()])

    @property
    def shortest_rest(self) -> float:
        """Shortest time after a lead, s."""
        return float(min(self.time[rows.stop - 1] - self.time[rows.start] for rows in self.rests()))

    def rests(self) -> list[slice]:
        """Return the rows after each lead, up to the next one."""
        starts = [start for start, _ in self.leads[1:]] + [np.inf]
        return [
            slice(int(np.searchsorted(self.time, end)), int(np.searchsorted(self.time, start)))
            for (_, end), start in zip(self.leads, starts, strict=True)
        ]


def guiding_act(stage: Stage) -> None:
    """Play the act."""
    arm = stage.arm
    stage.announce("Hand guiding: a hand takes the floating arm along and lets go, twice.")
    stage.call.set_parameters("/simulator", {"push_link": HELD_LINK})
    with arm.compensation():
        arm.wait_for_compensation()
        with arm.let_go():
            first = len(arm.track) - 1
            hand = Hand(stage, arm, HELD_LINK)
            for displacement in LEADS:
                hand.lead(displacement)
                arm.wait(WATCH_TIME_S)
            track = arm.track[first:]
    time, position = (np.array(values) for values in zip(*track, strict=True))
    stamps, forces = (np.array(values) for values in zip(*hand.forces, strict=True))
    force = np.interp(time, stamps, forces, left=0.0, right=0.0)
    leads = [(float(start - time[0]), float(end - time[0])) for start, end in hand.leads]
    motion = GuidedMotion(arm.robot, HELD_LINK, time - time[0], position, force, leads)
    stage.judge_later("hand_guiding", lambda: judge_guiding(motion))


def judge_guiding(motion: GuidedMotion) -> Act:
    """Check that the arm followed the hand and stayed where it was left."""
    poses = motion.position[[0, *(rows.stop - 1 for rows in motion.rests())]]
    return Act(
        "Hand guiding: the arm is led, and stays where it is left",
        GUIDING_STORY,
        [
            Check(
                f"Wrist led with at most {motion.force.max():.0f} N, shortest lead",
                CM_PER_M * float(motion.distances.min()),
                MIN_LEAD_CM,
                "cm",
                at_least=True,
            ),
            Check("Drift of the wrist when left", MM_PER_M * float(motion.drifts.max()), MAX_DRIFT_MM, "mm"),
            Check("Time of watching", motion.shortest_rest, MIN_WATCH_TIME_S, "s", at_least=True),
        ],
        pictures={
            "Grey: before; blue: where the hand left it": _draw_poses(motion.robot, poses),
            "Displacement of the wrist and force of the hand; the hand leads in the shaded times": _draw_motion(motion),
        },
    )


def _draw_motion(motion: GuidedMotion) -> str:
    """Draw the displacement of the held place, and the force of the hand below, as SVG."""
    held = motion.held
    displacement = CM_PER_M * np.linalg.norm(held - held[0], axis=1)

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + FORCE_HEIGHT)
        above.plot(motion.time, displacement, color=LIGHT["identified"], linewidth=1.8)
        label_axes(above, "", "displacement (cm)")
        above.tick_params(axis="x", labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=PICTURE_HEIGHT - 40 - FORCE_HEIGHT)
        below.plot(motion.time, motion.force, color=LIGHT["measured"], linewidth=1.4)
        label_axes(below, "time (s)", "force (N)")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            for start, end in motion.leads:
                axes.axvspan(start, end, color=LIGHT["band"], linewidth=0, zorder=0)
            axes.margins(x=0)

    return svg("Displacement of the wrist and force of the hand over time", PICTURE_WIDTH, PICTURE_HEIGHT, draw)


def _draw_poses(robot: RobotModel, poses: NDArray) -> str:
    """Draw the arm from the side in the poses (P, n) after each lead, the first in grey, as SVG."""
    sticks = SideView.from_motion(robot, poses).sticks(poses)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, 0, 0, 0, 0)
        prepare_axes(axes, sticks)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        for alpha, stick in zip(np.linspace(0.4, 1.0, len(sticks) - 1), sticks[1:], strict=True):
            draw_stick(axes, stick, LIGHT["identified"], alpha=float(alpha), width=3)

    return svg("Side view of the arm where the hand left it", PICTURE_WIDTH, PICTURE_HEIGHT, draw)
