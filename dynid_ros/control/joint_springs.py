"""Springs of flexible joints for one sample: from where the motors are to where gravity lets the links sag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import file_of, is_number
from dynid_ros.model.spring import Deflection, _cubic

SETTLED = 1e-6  # rad or m; the last step of the links that still counts
STEPS = 20


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
        beside = [name for name in springs if name not in self._names]
        if beside:
            raise ControlError(f"springs of joint(s) {', '.join(map(str, beside))}; expected {', '.join(self._names)}")
        self._joints = [(i, _deflection(name, springs[name])) for i, name in enumerate(self._names) if name in springs]

    @classmethod
    def of_document(cls, document: Mapping[str, Any], joint_names: Sequence[str]) -> JointSprings | None:
        """Springs of the section `flexible_joints` of `identified.yaml`; None without it.

        Joints whose stiffness the data did not decide count as rigid: they hardly wound up.

        Raises:
            IdentifiedFileError: springs that cannot be counted with.

        """
        section = document.get("flexible_joints")
        if section is None:
            return None
        try:
            if not isinstance(section, dict) or not all(isinstance(entry, dict) for entry in section.values()):
                raise ControlError("expected for each flexible joint its stiffness")
            return cls(joint_names, {joint: entry for joint, entry in section.items() if _decided(entry)})
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
    elastic = _cubic(stiffness, cubic) if cubic else (lambda torque: torque / stiffness)
    if not play:
        return elastic
    # Without torque the link may be anywhere in the play. It is taken to cross it while the torque grows to what would
    # wind the spring up by as much: a jump from end to end would let the fixed point swing.
    crossed = stiffness * play
    return lambda torque: elastic(torque) + play * min(max(torque / crossed, -1.0), 1.0)


def _decided(entry: Mapping[str, Any]) -> bool:
    decided = entry.get("decided")
    return not (isinstance(decided, dict) and decided.get("stiffness") is False)
