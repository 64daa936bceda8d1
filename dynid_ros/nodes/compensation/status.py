"""What the control loop of `gravity_compensation` says of itself on `/diagnostics`."""

import time

from dynid_ros.control import State
from dynid_ros.nodes.compensation.loop import CompensationLoop
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence

MIN_REPORTED_FRACTION = 0.05
"""Smallest torque that is reported although disabled, as a fraction of the joint's limit."""


class CompensationStatus:
    """Diagnostic status of the loop; rates and largest values cover the time since the last status."""

    def __init__(self) -> None:
        self._time = time.monotonic()

    def of(self, loop: CompensationLoop, state: str) -> Status:
        """Return the status of the loop while the node is in `state`."""
        now = time.monotonic()
        seconds = now - self._time
        self._time = now
        commands = loop.commands.topic
        values: dict[str, object] = {
            "joint_states_per_second": f"{loop.states.states / max(seconds, 1e-3):.1f}",
            "seconds_since_joint_state": f"{now - loop.states.heard:.2f}",
            "largest_torque": f"{loop.largest:.3f}",
            "at_torque_limit": ", ".join(sorted(loop.limited)) or "none",
            "longest_gap_of_joint_states": f"{loop.states.longest_gap:.3f}",
            "controller_state": loop.controller.view.state,
            "faults": loop.compensator.faults,
            "load": loop.load.load or "none",
            "loads_refused": loop.load.refused,
            "setpoints_refused": loop.setpoint.refused,
            "links": loop.links.problem or ("measured" if loop.links.topic else "not measured"),
            "planned_motion": self._planned(loop),
            "gravity": loop.imu.described,
            "command_topic": commands.name,
            "subscribers": commands.listeners,
        }
        for name, torque in zip(loop.joint_names, loop.compensator.torque, strict=True):
            values[f"torque {name}"] = f"{torque:.3f}"
        warning = self._warning(loop)
        loop.states.states = 0
        loop.largest = 0.0
        loop.limited.clear()
        if loop.compensator.state is State.FAULT:
            return ERROR, state, values
        return (WARN, f"{state}; {warning}", values) if warning else (OK, state, values)

    def _warning(self, loop: CompensationLoop) -> str:
        """Return a warning about the loop; empty without one."""
        if loop.limited:
            return f"torque exceeds the torque limit of {', '.join(sorted(loop.limited))}"
        if problem := loop.compensator.notice or loop.load.problem or loop.setpoint.problem:
            return problem
        if loop.links.problem:
            return f"links not measured: {loop.links.problem}"
        commands = loop.commands.topic
        if loop.compensator.state is not State.DISABLED:
            if inactive := loop.controller.inactive:
                return inactive
            if not commands.listeners:
                return f"nobody listens on {commands.name}: the torque reaches no controller"
        silent = loop.running and silence(loop.states.topic, loop.states.heard)
        return silent or commands.others or self._acting(loop) or loop.controller.warning

    @staticmethod
    def _planned(loop: CompensationLoop) -> str:
        """Return whether the torque of a planned motion is added."""
        if not any(loop.compensator.joints.planned_scale):
            return "not added"
        return loop.compensator.plan.problem or "added"

    def _acting(self, loop: CompensationLoop) -> str:
        """Return a message about torque that acts although disabled; empty without one."""
        if loop.compensator.state is not State.DISABLED:
            return ""
        joints = loop.compensator.joints
        efforts = loop.controller.acts(time.monotonic(), lambda: loop.states.last("effort"))
        for name, effort, limit in zip(joints.names, efforts, joints.torque, strict=False):
            if abs(effort) > MIN_REPORTED_FRACTION * limit:
                return f"{effort:.3g} N m (N) act on joint '{name}' although disabled, from a command before"
        return ""
