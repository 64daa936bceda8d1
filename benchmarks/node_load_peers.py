"""Processes around the nodes under test of `node_load`: a robot, its sensors, a relay for comparison, a listener.

    python -m benchmarks.node_load_peers joints|sensors|relay|listener|busy …

All except the relay and the busy process print a line when they are ready, run until SIGTERM, and then write their
data. The stamp of a message is its number in whole milliseconds, so that a recording shows every gap.
"""

import argparse
import signal
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

RATES = {"joint_states": 1000, "wrench": 1000, "pose": 250, "markers": 250}
"""Publication rates by topic, Hz."""
MARKERS = 20
QUEUE = 1000
COMMANDS = {"node": "/forward_effort_controller/commands", "relay": "/relay/commands"}
STAMP = slice(4, 12)
"""Bytes of the stamp in a serialized message with a header: after the four bytes of the encoding."""
FIRST_VALUE = 20
"""Offset of the values in a serialized Float64MultiArray without dimensions."""
BACKLOG = 10_000
MILLION = 10**6


class Ending:
    """Flag that becomes true on SIGINT or SIGTERM."""

    def __init__(self) -> None:
        self._received = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def _take(self, *_: object) -> None:
        self._received = True

    def __bool__(self) -> bool:
        return self._received


def joints(poses_file: str, times_file: str) -> None:
    """Publish the joint states of poses (N, n) periodically, and write the publication times, ns since the epoch."""
    from sensor_msgs.msg import JointState  # noqa: PLC0415

    poses = np.load(poses_file, allow_pickle=False)
    names = [f"panda_joint{i + 1}" for i in range(poses.shape[1])]
    zeros = [0.0] * len(names)
    messages = [JointState(name=names, position=pose.tolist(), velocity=zeros, effort=zeros) for pose in poses]
    times = _publish({"joint_states": (JointState, messages)})
    np.save(times_file, np.array(times["joint_states"]))


def sensors(times_file: str) -> None:
    """Publish a wrench, the pose of a body and markers, and write the publication times, ns since the epoch."""
    from geometry_msgs.msg import Pose, PoseArray, PoseStamped, WrenchStamped  # noqa: PLC0415

    times = _publish(
        {
            "wrench": (WrenchStamped, [WrenchStamped()]),
            "pose": (PoseStamped, [PoseStamped()]),
            "markers": (PoseArray, [PoseArray(poses=[Pose()] * MARKERS)]),
        }
    )
    np.savez(times_file, **{topic: np.array(values) for topic, values in times.items()})


def _publish(topics: dict[str, tuple[type, Sequence]]) -> dict[str, array]:
    """Publish the messages of each topic at its rate, in turn, until the process is terminated."""
    import rclpy  # noqa: PLC0415
    from rclpy.qos import QoSProfile  # noqa: PLC0415
    from rclpy.serialization import serialize_message  # noqa: PLC0415

    ending = Ending()
    rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.NO)
    node = rclpy.create_node(f"publisher_of_{'_'.join(topics)}")
    fastest = max(RATES[topic] for topic in topics)
    streams = []
    times = {topic: array("q") for topic in topics}
    for topic, (kind, messages) in topics.items():
        publisher = node.create_publisher(kind, topic, QoSProfile(depth=QUEUE))
        serialised = [bytearray(serialize_message(message)) for message in messages]
        streams.append((fastest // RATES[topic], 1000 // RATES[topic], publisher, serialised, times[topic]))
    print("ready", flush=True)
    due, tick = time.perf_counter(), 0
    while not ending:
        for every, milliseconds, publisher, serialised, sent in streams:
            if tick % every:
                continue
            number = len(sent) + 1
            data = serialised[len(sent) % len(serialised)]
            seconds, rest = divmod(number * milliseconds, 1000)
            data[STAMP] = seconds.to_bytes(4, "little") + (rest * MILLION).to_bytes(4, "little")
            sent.append(time.time_ns())
            publisher.publish(bytes(data))
        tick += 1
        due += 1 / fastest
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
    rclpy.try_shutdown()
    return times


def relay() -> None:
    """Publish the positions of joint states as commands: the simplest Python node between these topics."""
    import rclpy  # noqa: PLC0415
    from rclpy.executors import ExternalShutdownException  # noqa: PLC0415
    from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: PLC0415
    from sensor_msgs.msg import JointState  # noqa: PLC0415
    from std_msgs.msg import Float64MultiArray  # noqa: PLC0415

    rclpy.init()
    node = rclpy.create_node("relay")
    publisher = node.create_publisher(Float64MultiArray, COMMANDS["relay"], QoSProfile(depth=1))
    qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(
        JointState, "joint_states", lambda message: publisher.publish(Float64MultiArray(data=message.position)), qos
    )
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


def listener(joint: int, commands_file: str) -> None:
    """Record both streams of commands: times of publication and reception, ns, and the value of `joint`."""
    import rclpy  # noqa: PLC0415
    from rclpy.qos import QoSProfile  # noqa: PLC0415
    from std_msgs.msg import Float64MultiArray  # noqa: PLC0415

    ending = Ending()
    rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.NO)
    node = rclpy.create_node("listener")
    at = slice(FIRST_VALUE + 8 * joint, FIRST_VALUE + 8 * joint + 8)
    streams = {name: (array("q"), array("q"), bytearray()) for name in COMMANDS}
    subscriptions = {
        name: node.create_subscription(Float64MultiArray, topic, lambda _: None, QoSProfile(depth=BACKLOG), raw=True)
        for name, topic in COMMANDS.items()
    }
    print("ready", flush=True)
    while not ending:
        time.sleep(0.02)
        for name, subscription in subscriptions.items():
            published, received, values = streams[name]
            with subscription.handle:
                while (taken := subscription.handle.take_message(Float64MultiArray, True)) is not None:
                    published.append(taken[1]["source_timestamp"])
                    received.append(taken[1]["received_timestamp"])
                    values += taken[0][at]
    arrays = {}
    for name, (published, received, values) in streams.items():
        arrays |= {f"{name}_published": np.array(published), f"{name}_received": np.array(received)}
        arrays[f"{name}_value"] = np.frombuffer(bytes(values))
    np.savez(commands_file, **arrays)
    rclpy.try_shutdown()


def busy() -> None:
    """Keep one core busy."""
    while True:
        pass


def main() -> int:
    """Run one of the processes."""
    peers: dict[str, tuple[Callable[..., None], dict[str, type]]] = {
        "joints": (joints, {"poses_file": str, "times_file": str}),
        "sensors": (sensors, {"times_file": str}),
        "relay": (relay, {}),
        "listener": (listener, {"joint": int, "commands_file": str}),
        "busy": (busy, {}),
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="peer")
    for name, (_, arguments) in peers.items():
        command = commands.add_parser(name)
        for argument, kind in arguments.items():
            command.add_argument(argument, type=kind)
    options = vars(parser.parse_args())
    peer = options.pop("peer")
    if peer is None:
        parser.print_help()
    else:
        peers[peer][0](**options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
