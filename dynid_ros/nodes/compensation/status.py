"""What `gravity_compensation` says of itself on `/diagnostics`."""

import time

from dynid_ros.control import State
from dynid_ros.nodes.compensation.loop import CompensationLoop
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence

FELT = 0.05
"""Part of its limit from which on a torque that nobody commanded is told of."""


class CompensationStatus:
    """Looks at the loop; rates and largest values are those since the last look."""

    def __init__(self) -> None:
        self._time = time.monotonic()

    def of(self, loop: CompensationLoop, state: str) -> Status:
        """Status while the node is in `state`."""
        now = time.monotonic()
        seconds, self._time = now - self._time, now
        commands = loop.commands.topic
        values: dict[str, object] = {
            "joint_states_per_second": f"{loop.states.states / max(seconds, 1e-3):.1f}",
            "seconds_since_joint_state": f"{now - loop.states.heard:.2f}",
            "largest_torque": f"{loop.largest:.3f}",
            "at_torque_limit": ", ".join(sorted(loop.limited)) or "none",
            "longest_gap_of_joint_states": f"{loop.states.longest_gap:.3f}",
            "controller_state": loop.controller.watch.state if loop.controller.watch else "unknown",
            "faults": loop.compensator.faults,
            "load": loop.load.load or "none",
            "loads_refused": loop.load.refused,
            "setpoints_refused": loop.setpoint.refused,
            "links": loop.links.problem or ("measured" if loop.links.topic else "not measured"),
            "command_topic": commands.name,
            "subscribers": commands.listeners,
        }
        for name, torque in zip(loop.joint_names, loop.compensator.torque, strict=True):
            values[f"torque {name}"] = f"{torque:.3f}"
        complaint = self._complaint(loop)
        loop.states.states, loop.largest = 0, 0.0
        loop.limited.clear()
        if loop.compensator.state is State.FAULT:
            return ERROR, state, values
        return (WARN, f"{state}; {complaint}", values) if complaint else (OK, state, values)

    def _complaint(self, loop: CompensationLoop) -> str:
        """What is wrong and is no fault; empty: nothing."""
        if loop.limited:
            return f"torque exceeds the torque limit of {', '.join(sorted(loop.limited))}"
        if problem := loop.load.problem or loop.setpoint.problem:
            return problem
        if loop.links.problem:
            return f"links not measured: {loop.links.problem}"
        unheard = loop.compensator.state is not State.DISABLED and loop.controller.inactive
        if unheard:
            return unheard
        commands = loop.commands.topic
        if loop.compensator.state is not State.DISABLED and not commands.listeners:
            return f"nobody listens on {commands.name}: the torque reaches no controller"
        quiet = loop.running and silence(loop.states.topic, loop.states.heard)
        return quiet or commands.others or self._acting(loop) or loop.controller.complaint

    def _acting(self, loop: CompensationLoop) -> str:
        """Torque that acts although none is commanded, in words; empty: none, or nobody knows."""
        if loop.compensator.state is not State.DISABLED:
            return ""
        joints, efforts = loop.compensator.joints, loop.controller.acts(time.monotonic(), loop.states.effort)
        for name, effort, limit in zip(joints.names, efforts, joints.torque, strict=False):
            if abs(effort) > FELT * limit:
                return f"{effort:.3g} N m (N) act on joint '{name}' although disabled, from a command before"
        return ""
