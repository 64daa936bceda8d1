"""From `identified.yaml` and a URDF to the gravity torque of one sample: of the arm, its load and its springs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.flexible_joints import springs_of
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import (
    check_same_robot,
    file_of,
    gravity_of,
    is_number,
    load_identified,
    mapping,
)
from dynid_ros.identified.joint_friction import own_angle_torque
from dynid_ros.identified.load import carried_load
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import from_center_of_mass, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.model.spring import Deflection, deflection_by_torque
from dynid_ros.model.urdf import parse_urdf

SETTLED = 1e-6  # rad or m; the last step of the links that still counts
STEPS = 20
LONGEST_LEVER = 2.0  # m; a centre of mass further away is one in millimetres


@dataclass(frozen=True)
class CarriedLoad:
    """Mass and place of a rigid body that is fixed to the arm's last link.

    Attributes:
        mass: kg; 0: none.
        center: centre of mass in the frame, m.
        frame: a link that no joint moves against the last one, such as the tip link.
        inertia: (6,) xx xy xz yy yz zz about the centre, axes of the frame, kg m²; zero where it is not known.

    Raises:
        ControlError: no load has these numbers; the message is an end of a sentence about the load.
    """

    mass: float
    center: tuple[float, float, float]
    frame: str
    inertia: tuple[float, ...] = (0.0,) * 6

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.inertia)):
            object.__setattr__(self, "inertia", (0.0,) * 6)
        if not (math.isfinite(self.mass) and self.mass >= 0.0):
            raise ControlError(f"its mass is {self.mass} kg; expected a finite number of at least 0")
        if self.mass > 0.0 and not math.hypot(*self.center) <= LONGEST_LEVER:
            raise ControlError(
                f"its centre of mass is {list(self.center)} m from link '{self.frame}'; expected finite numbers, at "
                f"most {LONGEST_LEVER:g} m in all"
            )

    @classmethod
    def of_section(cls, section: object) -> CarriedLoad:
        """Load of the section `load` of `identified.yaml`.

        Raises:
            ControlError: as above, or the section does not say mass, centre and frame.
        """
        inertia = section.get("inertia") if isinstance(section, dict) else None
        known = isinstance(inertia, list) and len(inertia) == 6 and all(map(is_number, inertia))
        return cls(*carried_load(section), tuple(map(float, inertia)) if known and inertia else (0.0,) * 6)

    def __str__(self) -> str:
        if not self.mass:
            return "none"
        x, y, z = (1e3 * value for value in self.center)
        return f"{self.mass:.3f} kg at ({x:.0f}, {y:.0f}, {z:.0f}) mm from {self.frame}"


class LoadFrames:
    """The links that a load may be fixed to: the last link before the tip, and what no joint moves against it."""

    def __init__(self, robot: RobotModel) -> None:
        last = robot.link_names[robot.chain.tip_link]
        self._poses = LinkTree(parse_urdf(robot.urdf or "", robot.name), robot.name).fixed_to(last)
        self._last, self._size = robot.tip_columns, robot.parameters.size

    def parameters(self, load: CarriedLoad) -> np.ndarray:
        """(10 m,) of the load as a part of the last link.

        Raises:
            ControlError: the load's frame is none of these links.
        """
        pose = self._poses.get(load.frame)
        if pose is None:
            raise ControlError(
                f"its frame '{load.frame}' is not fixed to the last link; expected {' or '.join(self._poses)}"
            )
        inertia = np.zeros((3, 3))
        inertia[np.triu_indices(3)] = load.inertia
        inertia += np.triu(inertia, 1).T
        body = from_center_of_mass(load.mass, np.array(load.center) if load.mass else np.zeros(3), inertia)
        parameters = np.zeros(self._size)
        parameters[self._last] = transformed(body, pose)
        return parameters


class JointSprings:
    """Springs of n joints; at rest each passes the gravity torque of its link on.

    A step of the fixed point q = q_m - d(gravity(q)) leaves of an error what gravity changes per radian over the
    stiffness: 0.01 on a soft industrial arm, where three looks are enough.

    Args:
        joint_names: n names, for messages.
        springs: by joint name stiffness k (N m/rad), and cubic k3 (N m/rad^3) or dead_zone a (rad) where there is such
            a term, of the law k e + k3 e^3, e = d beyond a play of -a to +a. Joints that are not named are rigid.

    Raises:
        ControlError: a spring that does not hold; the message names the joint.
    """

    def __init__(self, joint_names: Sequence[str], springs: Mapping[str, Mapping[str, Any]]) -> None:
        self._names = tuple(joint_names)
        foreign = [name for name in springs if name not in self._names]
        if foreign:
            raise ControlError(f"springs of joint(s) {', '.join(map(str, foreign))}; expected {', '.join(self._names)}")
        self._joints = [(i, _deflection(name, springs[name])) for i, name in enumerate(self._names) if name in springs]

    @classmethod
    def of_document(cls, document: Mapping[str, Any], joint_names: Sequence[str]) -> JointSprings | None:
        """Springs of the section `flexible_joints` of `identified.yaml`; None without it.

        Joints whose stiffness the data did not determine count as rigid: they hardly wound up.

        Raises:
            IdentifiedFileError: springs that cannot be counted with.
        """
        try:
            springs = springs_of(document)
            return None if springs is None else cls(joint_names, springs)
        except ControlError as error:
            raise IdentifiedFileError(
                f"{file_of(document)}: section flexible_joints cannot be used: {error}. Identify the joints again, or "
                "do without: use_springs false"
            ) from error

    def settled(self, motors: Sequence[float], gravity: Callable[[Sequence[float]], list[float]]) -> list[float]:
        """Gravity torque (n,) of the links that hang on motors at `motors` (n,) and are at rest.

        Raises:
            ControlError: there is no such place, for the springs are too soft or the arm is too heavy.
        """
        links = list(motors)
        for _ in range(STEPS):
            torque = gravity(links)
            settled = True
            for i, deflection in self._joints:
                place = motors[i] - deflection(torque[i])
                settled &= abs(place - links[i]) < SETTLED  # not so if it is NaN
                links[i] = place
            if settled:
                return torque
        raise self._no_rest(motors)

    @staticmethod
    def _no_rest(motors: Sequence[float]) -> ControlError:
        return ControlError(
            f"the links find no rest on their springs with the motors at {[round(motor, 4) for motor in motors]}: the "
            "springs are too soft for the arm and its load; check flexible_joints and the load"
        )


def _deflection(joint: str, entry: Mapping[str, Any]) -> Deflection:
    """Deflection of a joint by torque, the law's inverse."""
    stiffness, cubic, play = (entry.get(key, 0.0) for key in ("stiffness", "cubic", "dead_zone"))
    for key, value, good in (
        ("stiffness", stiffness, is_number(stiffness) and stiffness > 0.0),
        ("cubic", cubic, is_number(cubic)),
        ("dead_zone", play, is_number(play) and play >= 0.0),
    ):
        if not good:
            raise ControlError(
                f"{key} of joint '{joint}' is {value!r}; expected a number{' above 0' * (key == 'stiffness')}"
            )
    return deflection_by_torque(stiffness, cubic, play)


class LoadedGravity:
    """Torque (n,) in N m (N) from positions (n,) of the motors in rad (m), for a control loop.

    Gravity acts on links, and flexible joints give way: the links are where springs let them sag to, or where they are
    measured to be.

    Args:
        model: of the arm.
        moments: (k,) minimal moments of the arm alone.
        frames: links that a load may be fixed to; None: those of the model's robot.
        load: that is carried; None: none was published.
        largest_load: largest mass of a load that is believed, kg.
        springs: between motors and links; None: rigid joints.
        own_angles: torque (n,) that depends on each joint's own position, of counterbalances and cables; None: none.
        down: says gravity (3,) in the frame of a base that tilts, m/s^2, at each sample; None: that of the model.

    Attributes:
        load: as given.
        model: as given.
        arm_moments: as given.
        moments: (k,) of the arm with its load.

    Raises:
        ControlError: the load is heavier, or its frame is not fixed to the arm's last link; the message is an end of a
            sentence about the load.
    """

    def __init__(
        self,
        model: GravityModel,
        moments: ArrayLike,
        frames: LoadFrames | None = None,
        load: CarriedLoad | None = None,
        *,
        largest_load: float = math.inf,
        springs: JointSprings | None = None,
        own_angles: Callable[[Sequence[float]], list[float]] | None = None,
        down: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        if load is not None and not load.mass <= largest_load:
            raise ControlError(
                f"its mass is {load.mass:g} kg; at most {largest_load:g} kg are believed (parameter largest_load)"
            )
        self.load = load
        self._largest_load = largest_load
        self._springs, self._own_angles, self._down = springs, own_angles, down
        self.model = model
        self.arm_moments = np.asarray(moments, dtype=float)
        self._frames = frames or LoadFrames(model.robot)
        carried = 0.0 if load is None else model.project(self._frames.parameters(load))
        self.moments = self.arm_moments + carried
        self._torque = model.bind(self.moments, down)

    def __call__(self, position: Sequence[float], links: Sequence[float] | None = None) -> list[float]:
        """Torque for one sample; `links`: measured positions of the links, None: by the springs.

        Raises:
            ControlError: the arm is too heavy for its springs.
        """
        if links is None and self._springs is not None:
            torque = self._springs.settled(position, self._torque)
        else:
            torque = self._torque(position if links is None else links)
        if self._own_angles is None:
            return torque
        return [gravity + own for gravity, own in zip(torque, self._own_angles(position), strict=True)]

    def carrying(self, load: CarriedLoad | None) -> LoadedGravity:
        """The same arm with another load; takes microseconds."""
        return self._with(load, self._down)

    def tilting(self, down: Callable[[], Sequence[float]] | None) -> LoadedGravity:
        """The same arm and load, on a base in whose frame gravity is what `down` says, (3,), m/s^2."""
        return self._with(self.load, down)

    def _with(self, load: CarriedLoad | None, down: Callable[[], Sequence[float]] | None) -> LoadedGravity:
        return LoadedGravity(
            self.model,
            self.arm_moments,
            self._frames,
            load,
            largest_load=self._largest_load,
            springs=self._springs,
            own_angles=self._own_angles,
            down=down,
        )


def robot_of_file(
    model_file: str | Path,
    urdf: str,
    base: str | None,
    tip: str | None,
    *,
    gravity: Sequence[float],
    held: Mapping[str, float] | None,
) -> tuple[dict, RobotModel]:
    """An `identified.yaml` and the robot that it is of; arguments and errors as of `load_gravity_torque`."""
    identified = load_identified(model_file)
    ends = {"base": base, "tip": tip}
    for end in [end for end, link in ends.items() if link is None]:
        ends[end] = identified["robot"].get(end)
        if not isinstance(ends[end], str):
            raise IdentifiedFileError(f"{model_file}: robot.{end} is {ends[end]!r}, expected the name of a link")
    held = held or mapping(identified["robot"], "held", f"{model_file}: robot")
    if not all(map(is_number, held.values())):
        raise IdentifiedFileError(f"{model_file}: robot.held is {held!r}, expected positions of joints, rad or m")
    down = gravity_of(identified, gravity, STANDARD_GRAVITY)
    robot = RobotModel.from_urdf(urdf, tip=ends["tip"], base=ends["base"], gravity=down, held=held)
    check_same_robot(identified, robot)
    return identified, robot


def load_gravity_torque(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    *,
    use_load: bool = True,
    largest_load: float = math.inf,
    use_springs: bool = True,
    held: Mapping[str, float] | None = None,
    tilts: bool = False,
) -> tuple[RobotModel, LoadedGravity]:
    """Robot and its identified gravity torque, N m (N) from rad (m), both (n,) in the model's joint order.

    The torque is that of the arm and of the load in section `load`, where the file has one. Where it has a section
    `flexible_joints`, positions are those of the motors, from which the links sag. Springs and harmonics of joints'
    own angles, section `friction`, act at standstill as gravity does, and are in it.

    Args:
        model_file: `identified.yaml`.
        urdf: path or text.
        base: first link of the chain; None: that of the file.
        tip: last link of the chain; None: that of the file.
        gravity: in the base link's frame, m/s^2; the default gives way to what was found, where the file's was.
        use_load: False: the arm alone, whatever the file says of a load.
        largest_load: largest mass of a load that is believed, kg.
        use_springs: False: rigid joints, whatever the file says of springs.
        held: positions of joints that do not move, rad or m; None or empty: those of the file.
        tilts: the base does. Then gravity loads joints that it did not load when the arm was identified; what they
            carry is that of the links in the file, else in the URDF.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or a joint was not observable in it although its
            torque is not zero; or its load or its springs are none that can be counted with.
        ModelError: the URDF does not describe such a chain.
    """
    identified, robot = robot_of_file(model_file, urdf, base, tip, gravity=gravity, held=held)
    return robot, loaded_gravity(
        identified, robot, use_load=use_load, largest_load=largest_load, use_springs=use_springs, tilts=tilts
    )


def loaded_gravity(
    identified: dict,
    robot: RobotModel,
    *,
    use_load: bool = True,
    largest_load: float = math.inf,
    use_springs: bool = True,
    tilts: bool = False,
) -> LoadedGravity:
    """Return the gravity torque of a document of `identified.yaml`; arguments and errors as `load_gravity_torque`."""
    model = GravityModel(robot)
    springs = JointSprings.of_document(identified, robot.joint_names) if use_springs else None
    moments = gravity_moments(identified, model)
    if tilts and (idle := model.unobservable_axes()).any():
        from dynid_ros.identified.links import link_model  # noqa: PLC0415 - no base that stands still asks

        links = link_model(identified, robot).parameters if "links" in identified else robot.parameters
        for i in np.flatnonzero(idle).tolist():
            moments[model.columns(i)] = model.project(links)[model.columns(i)]
    arm = LoadedGravity(
        model,
        moments,
        largest_load=largest_load,
        springs=springs,
        own_angles=own_angle_torque(identified, robot.joint_names),
    )
    if not use_load or identified.get("load") is None:
        return arm
    try:
        return arm.carrying(CarriedLoad.of_section(identified["load"]))
    except ControlError as error:
        raise IdentifiedFileError(
            f"{file_of(identified)}: the load in it cannot be used: {error}. Identify it again, or do without: "
            "use_load false"
        ) from error
