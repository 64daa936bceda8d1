"""Gravity torque of an identified arm with its load and springs, for one sample of a control loop.

`HeldArm` also holds the friction and the brake that a control loop needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.control.joint_brake import JointBrake
from dynid_ros.control.joint_feedback import IdentifiedFriction
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
from dynid_ros.identified.servos import servo_stiffness
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import from_center_of_mass, transformed
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.model.spring import Deflection, deflection_by_torque

if TYPE_CHECKING:
    from dynid_ros.control.motion_torque import MotionTorque  # a node without links does not load it

FIXED_POINT_TOLERANCE = 1e-6  # rad or m; smaller changes of the link positions end the iteration
MAX_ITERATIONS = 20
MAX_LEVER_M = 2.0  # a centre of mass farther away was probably entered in millimetres


@dataclass(frozen=True)
class CarriedLoad:
    """Rigid body that is fixed to the arm's last link.

    Attributes:
        mass: mass, kg; 0 for no load.
        center: (3,) centre of mass in the frame, m.
        frame: link that is rigidly fixed to the last one, such as the tip link.
        inertia: (6,) xx xy xz yy yz zz about the centre of mass in the axes of the frame, kg m²; zero if unknown.
        is_tool: whether the load stays on the arm, like that of a model file; False: the arm may put it down any time.

    Raises:
        ControlError: a value is impossible for a load; the message reads "its mass is …", so that the caller can name
            the source of the load before it.
    """

    mass: float
    center: tuple[float, float, float]
    frame: str
    inertia: tuple[float, ...] = (0.0,) * 6
    is_tool: bool = False

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.inertia)):
            object.__setattr__(self, "inertia", (0.0,) * 6)
        if not (math.isfinite(self.mass) and self.mass >= 0.0):
            raise ControlError(f"its mass is {self.mass} kg; expected a finite number of at least 0")
        if self.mass > 0.0 and not math.hypot(*self.center) <= MAX_LEVER_M:
            raise ControlError(
                f"its centre of mass is {list(self.center)} m from link '{self.frame}'; expected finite numbers, at "
                f"most {MAX_LEVER_M:g} m in all"
            )

    @classmethod
    def from_section(cls, section: object) -> CarriedLoad:
        """Read the load from the section `load` of `identified.yaml`.

        Raises:
            ControlError: mass, centre or frame is missing, or impossible.
        """
        inertia = section.get("inertia") if isinstance(section, dict) else None
        is_known = isinstance(inertia, list) and len(inertia) == 6 and all(map(is_number, inertia))
        values = tuple(map(float, inertia)) if is_known and inertia else (0.0,) * 6
        return cls(*carried_load(section), values, is_tool=True)

    def __str__(self) -> str:
        if not self.mass:
            return "none"
        x, y, z = (1e3 * value for value in self.center)
        return f"{self.mass:.3f} kg at ({x:.0f}, {y:.0f}, {z:.0f}) mm from {self.frame}"


class LoadFrames:
    """Links that a load may be fixed to: the last moving link and all links fixed to it."""

    def __init__(self, robot: RobotModel) -> None:
        last = robot.link_names[robot.chain.tip_link]
        self._poses = robot.tree.fixed_to(last)
        self._last = robot.tip_columns
        self._size = robot.parameters.size

    def parameters(self, load: CarriedLoad) -> np.ndarray:
        """Return parameters (10 m,) of all m links: those of the load in the last link's frame, zero for other links.

        Raises:
            ControlError: the frame of the load is not fixed to the last link.
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
    """Springs of n joints; at rest each spring carries the gravity torque of its joint.

    The link positions solve the fixed point q = q_m - d(gravity(q)), where q_m are the motor positions and d is the
    deflection. One iteration multiplies the error by the derivative of gravity over the stiffness, which is 0.01 for a
    soft industrial arm: three iterations suffice.

    Args:
        joint_names: n names, for messages.
        springs: stiffness k (N m/rad), and optionally cubic k3 (N m/rad^3) and dead_zone a (rad), by joint name. The
            torque is k e + k3 e^3, where e is the deflection beyond a play of -a to +a. Other joints are rigid.

    Raises:
        ControlError: a spring parameter is impossible; the message names the joint.
    """

    def __init__(self, joint_names: Sequence[str], springs: Mapping[str, Mapping[str, Any]]) -> None:
        self._names = tuple(joint_names)
        foreign = [name for name in springs if name not in self._names]
        if foreign:
            raise ControlError(f"springs of joint(s) {', '.join(map(str, foreign))}; expected {', '.join(self._names)}")
        self._joints = [(i, _deflection(name, springs[name])) for i, name in enumerate(self._names) if name in springs]

    @classmethod
    def from_document(cls, document: Mapping[str, Any], joint_names: Sequence[str]) -> JointSprings | None:
        """Read the springs from the section `flexible_joints` of `identified.yaml`; return None without one.

        Joints with an undetermined stiffness count as rigid, because they hardly deflected.

        Raises:
            IdentifiedFileError: the springs in the file cannot be used.
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
        """Return the gravity torque (n,) in equilibrium with the springs, N m (N).

        Args:
            motors: (n,) positions of the motors, rad (m).
            gravity: function from link positions (n,) to gravity torques (n,).

        Raises:
            ControlError: the iteration does not converge: the springs are too soft or the arm is too heavy.
        """
        links = list(motors)
        for _ in range(MAX_ITERATIONS):
            torque = gravity(links)
            converged = True
            for i, deflection in self._joints:
                position = motors[i] - deflection(torque[i])
                converged &= abs(position - links[i]) < FIXED_POINT_TOLERANCE  # false for NaN
                links[i] = position
            if converged:
                return torque
        raise self._no_rest(motors)

    @staticmethod
    def _no_rest(motors: Sequence[float]) -> ControlError:
        return ControlError(
            f"the links find no rest on their springs with the motors at {[round(motor, 4) for motor in motors]}: the "
            "springs are too soft for the arm and its load; check flexible_joints and the load"
        )


def _deflection(joint: str, entry: Mapping[str, Any]) -> Deflection:
    """Return the deflection of a joint as a function of torque, the inverse of the spring law."""
    stiffness, cubic, play = (entry.get(key, 0.0) for key in ("stiffness", "cubic", "dead_zone"))
    for key, value, is_possible, expected in (
        ("stiffness", stiffness, is_number(stiffness) and stiffness > 0.0, "a number above 0"),
        ("cubic", cubic, is_number(cubic), "a number"),
        ("dead_zone", play, is_number(play) and play >= 0.0, "a number of at least 0"),
    ):
        if not is_possible:
            raise ControlError(f"{key} of joint '{joint}' is {value!r}; expected {expected}")
    return deflection_by_torque(stiffness, cubic, play)


class LoadedGravity:
    """Function from motor positions (n,), rad (m), to gravity torques (n,), N m (N), for a control loop.

    Gravity acts on the links. With flexible joints the link positions are measured, or computed from the springs.

    Args:
        model: regressor of the gravity torque in its base parameters, the minimal moments.
        moments: (k,) minimal moments of the arm without load, kg m (kg).
        frames: links that a load may be fixed to; None: from the model's robot.
        load: carried load; None without one.
        largest_load: largest plausible mass of a load, kg.
        springs: springs between motors and links; None: rigid joints.
        own_angles: function from positions (n,) to torques (n,) that depend on the position of their own joint only,
            such as those of counterbalances and cables; None: there are none.
        down: function that returns gravity (3,) in the frame of a tilting base, m/s^2; None: constant gravity of the
            model.
        motion: torque of motions without a load; None: unknown.

    Attributes:
        model: regressor of the gravity torque.
        load: carried load; None without one.
        motion: torque of motions with the load; None: unknown.
        arm_moments: (k,) minimal moments of the arm without load, kg m (kg).
        moments: (k,) minimal moments of the arm with its load, kg m (kg).
        payload_torque: function from positions (n,) to the gravity torques (n,) of a load that may be put down; None
            without such a load.

    Raises:
        ControlError: the load is too heavy, or its frame is not fixed to the arm's last link; the message reads
            "its mass is …" like that of `CarriedLoad`.
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
        motion: MotionTorque | None = None,
    ) -> None:
        if load is not None and not load.mass <= largest_load:
            raise ControlError(
                f"its mass is {load.mass:g} kg; at most {largest_load:g} kg are believed (parameter largest_load)"
            )
        self.load = load
        self._largest_load = largest_load
        self._springs = springs
        self._own_angles = own_angles
        self._down = down
        self.model = model
        self.arm_moments = np.asarray(moments, dtype=float)
        self._frames = frames or LoadFrames(model.robot)
        load_parameters = 0.0 if load is None else self._frames.parameters(load)
        load_moments = np.zeros_like(self.arm_moments) if load is None else model.project(load_parameters)
        self.moments = self.arm_moments + load_moments
        self.motion = None if motion is None else motion.carrying(load_parameters)
        self._torque = model.bind(self.moments, down)
        is_removable = load is not None and load.mass > 0.0 and not load.is_tool
        self.payload_torque = model.bind(load_moments, down) if is_removable else None

    def __call__(self, position: Sequence[float], links: Sequence[float] | None = None) -> list[float]:
        """Return the gravity torque (n,) of one sample, N m (N).

        Args:
            position: (n,) positions of the motors, rad (m).
            links: (n,) measured positions of the links, rad (m); None: computed from the springs.

        Raises:
            ControlError: the arm is too heavy for its springs.
        """
        if links is None and self._springs is not None:
            torque = self._springs.settled(position, self._torque)
        else:
            torque = self._torque(position if links is None else links)
        if self._own_angles is None:
            return torque
        return [gravity + spring for gravity, spring in zip(torque, self._own_angles(position), strict=True)]

    def carrying(self, load: CarriedLoad | None) -> LoadedGravity:
        """Return a copy with another load; it takes microseconds, so a control loop can call it."""
        return self._with(load, self._down, self.motion)

    def tilting(self, down: Callable[[], Sequence[float]] | None) -> LoadedGravity:
        """Return a copy on a tilting base; `down` returns gravity (3,) in the frame of the base, m/s^2."""
        return self._with(self.load, down, self.motion)

    def moving(self, motion: MotionTorque) -> LoadedGravity:
        """Return a copy that also has the torque of motions; `motion` is that of the arm without a load."""
        return self._with(self.load, self._down, motion)

    def _with(
        self, load: CarriedLoad | None, down: Callable[[], Sequence[float]] | None, motion: MotionTorque | None
    ) -> LoadedGravity:
        return LoadedGravity(
            self.model,
            self.arm_moments,
            self._frames,
            load,
            largest_load=self._largest_load,
            springs=self._springs,
            own_angles=self._own_angles,
            down=down,
            motion=motion,
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
    """Return the document of an `identified.yaml` and its robot; see `load_gravity_torque` for arguments and errors."""
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
    """Return a robot and its identified gravity torque, a function from positions (n,) to torques (n,), N m (N).

    The torque includes the load of the section `load`. With a section `flexible_joints`, positions are those of the
    motors. Terms of the section `friction` that depend on position, such as springs and harmonics, act at standstill
    like gravity and are included.

    Args:
        model_file: path of an `identified.yaml`.
        urdf: path or text of the URDF.
        base: first link of the chain; None: from the file.
        tip: last link of the chain; None: from the file.
        gravity: (3,) gravity in the base link's frame, m/s^2; the default is replaced by an estimate in the file.
        use_load: whether to include the load of the file.
        largest_load: largest plausible mass of a load, kg.
        use_springs: whether to use the springs of the file; otherwise joints are rigid.
        held: positions of locked joints by name, rad or m; None or empty: from the file.
        tilts: whether the base tilts. Gravity may then load joints that it did not load during identification; their
            torque is computed from the links of the file, or of the URDF if the file has no links.

    Raises:
        IdentifiedFileError: the file is malformed or of another robot, a loaded joint was not observable, or the load
            or the springs in the file cannot be used.
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
    """Return the gravity torque of a document of `identified.yaml`; see `load_gravity_torque` for arguments."""
    model = GravityModel(robot)
    springs = JointSprings.from_document(identified, robot.joint_names) if use_springs else None
    moments = gravity_moments(identified, model)
    unloaded = model.unobservable_axes()
    if tilts and unloaded.any():
        from dynid_ros.identified.links import link_model  # noqa: PLC0415 - needed for tilting bases only

        # On a level base gravity did not load these joints, so their moments can only come from parameters of links.
        links = link_model(identified, robot).parameters if "links" in identified else robot.parameters
        for i in np.flatnonzero(unloaded).tolist():
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
        return arm.carrying(CarriedLoad.from_section(identified["load"]))
    except ControlError as error:
        raise IdentifiedFileError(
            f"{file_of(identified)}: the load in it cannot be used: {error}. Identify it again, or do without: "
            "use_load false"
        ) from error


@dataclass(frozen=True)
class HeldArm:
    """An identified arm that a control loop can hold.

    Attributes:
        gravity: gravity torque of the arm and of the load in the file, and the torque of motions if the file has links.
        friction: friction that may be compensated for.
        brake: damping computed from the identified inertias, or from the URDF's if the file has no links.
        servo_stiffness: identified stiffness of position servos by joint, N m/rad (N/m).
    """

    gravity: LoadedGravity
    friction: IdentifiedFriction
    brake: JointBrake
    servo_stiffness: Mapping[str, float] = field(default_factory=dict)

    @property
    def robot(self) -> RobotModel:
        """The arm."""
        return self.gravity.model.robot


def load_held_arm(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    *,
    gravity: Sequence[float],
    held: Mapping[str, float] | None = None,
    **options: Any,
) -> HeldArm:
    """Read gravity torque, friction and brake of an arm; see `load_gravity_torque` for arguments and errors."""
    identified, robot = robot_of_file(model_file, urdf, base, tip, gravity=gravity, held=held)
    parameters = None
    loaded = loaded_gravity(identified, robot, **options)
    if "links" in identified:
        from dynid_ros.control.motion_torque import MotionTorque  # noqa: PLC0415 - not for a model of gravity alone
        from dynid_ros.identified.links import link_model  # noqa: PLC0415

        links = link_model(identified, robot)
        parameters = links.parameters
        loaded = loaded.moving(MotionTorque(links))
    return HeldArm(
        loaded,
        IdentifiedFriction.from_document(identified, robot.joint_names),
        JointBrake.from_robot(
            robot, robot.limits.effort.tolist(), parameters=parameters, rotor_inertia=rotor_inertias(identified, robot)
        ),
        servo_stiffness(identified),
    )


def rotor_inertias(identified: Mapping[str, Any], robot: RobotModel) -> list[float]:
    """Return the rotor inertias (n,) in the section `friction`, kg m^2 (kg); zero for joints without one."""
    section = identified.get("friction")
    entries = [section.get(name) if isinstance(section, Mapping) else None for name in robot.joint_names]
    values = [entry.get("rotor_inertia") if isinstance(entry, Mapping) else None for entry in entries]
    return [float(value) if value is not None and is_number(value) and value > 0.0 else 0.0 for value in values]
