"""Base of the nodes that identify from recordings: `~/identify` and `~/cancel` in, `~/result` and files out.

Latched topics: `~/result` (some ten lines of YAML: quality, warnings, files), `~/state` (a few lines for people: the
step that runs and its remaining time, or the outcome), `~/progress` (fraction of all steps that is done, 0 to 1).
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError, IdentificationError
from dynid_ros.files import write_atomically
from dynid_ros.identification.servo.command_delay import estimate_command_delay
from dynid_ros.jobs.inputs import ROBOT_OPTIONS
from dynid_ros.jobs.kinds import FITTED, KINDS
from dynid_ros.jobs.run import IdentificationRun, run
from dynid_ros.jobs.run_file import write_run_file
from dynid_ros.jobs.screen import MAX_REMARKS
from dynid_ros.model.urdf_text import is_urdf_text
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, Diagnostics, Status
from dynid_ros.nodes.shared.parameters import NodeParameter, declare, parameters_of, read_values, setting_arguments
from dynid_ros.nodes.shared.process import Background, answer, answer_later
from dynid_ros.nodes.shared.robot_description import CARRIED, ROBOT_PARAMETERS, robot_model
from dynid_ros.nodes.shared.topics import LATCHED, brief_yaml
from dynid_ros.progress import Cancelled, Watch, watching
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import IMPEDANCE, EffortConvention, at_delay
from dynid_ros.settings import Setting

RECORDING_PARAMETERS = (
    NodeParameter(
        "recording",
        "",
        "rosbag2 folder, .csv or .npz to fit; empty: the recorder's last bag, also while it records",
        adjustable=True,
    ),
    NodeParameter("more_recordings", [""], 'further recordings to fit together with it; [""]: none', adjustable=True),
)
RUN_PARAMETERS = (
    NodeParameter(
        "answer_at_once", False, "whether ~/identify answers at once; ~/state then reports its end", adjustable=True
    ),
    NodeParameter("bag_topic", "recorder/bag", "topic on which the recorder announces its bag", required=True),
)
EFFORT_PARAMETERS = (
    NodeParameter("torque_topic", "", "topic of separate joint torques in the bag; empty: effort of joint_states"),
    NodeParameter(
        "effort_convention",
        "",
        "meaning of effort: torque, motor_current, gravity_compensated, or impedance (torque computed from the "
        "commands of drives in MIT mode); required, see the manual of the driver",
    ),
    NodeParameter(
        "motor_gains",
        [0.0],
        "gains of motor currents, N m per unit of effort, one per joint in the model's order; [0.0]: none",
    ),
    NodeParameter("command_topic", "", "topic of the commands in the bag, for impedance; empty: none"),
    NodeParameter(
        "stiffness",
        [0.0],
        "gains of the position error, N m/rad (N/m), for impedance, one value, or one per joint; [0.0]: those in the "
        "commands",
        least=0.0,
    ),
    NodeParameter("damping", [0.0], "gains of the velocity error, N m s/rad (N s/m), for impedance", least=0.0),
    NodeParameter("command_delay", nan, "time after which a command acts, s, for impedance; nan: estimated"),
)

PROGRESS_PERIOD_S = 1.0
"""Time between two messages on `~/state` and `~/progress` during an identification."""
RUN_URDF_FILE = "experiment.urdf"
"""File for the URDF in the folder of the results, if the node has received the URDF as text."""
READ_TOPICS = ("joint_states_topic", "torque_topic", "command_topic", "link_states_topic")
"""Parameters that name topics of a bag; not every node has all of them."""
EFFORT_OPTIONS = ("effort_convention", "motor_gains", "stiffness", "damping", "command_delay")


def parameters_of_kind(kind: str, *more: NodeParameter) -> tuple[NodeParameter, ...]:
    """Return the parameters of a node for `kind`, a key of `KINDS`: recordings by role, files, settings, output."""
    table = KINDS[kind]
    roles = (
        NodeParameter(role.parameter, "", f"{role.help.removesuffix('; repeatable')}; empty: none", adjustable=True)
        for role in table.roles
        if role.name != FITTED.name
    )
    return (
        *ROBOT_PARAMETERS,
        CARRIED,
        *RECORDING_PARAMETERS,
        *roles,
        *RUN_PARAMETERS,
        *(EFFORT_PARAMETERS if table.checks.torque else ()),
        *more,
        *(NodeParameter(f"{file.name}_file", "", f"{file.help}; empty: none") for file in table.files),
        *parameters_of(table.settings()),
        NodeParameter("output", "dynid_results", f"folder for {', '.join(table.writes)}"),
    )


def _brief_result(job: IdentificationRun, condition: str) -> dict[str, Any]:
    """Return the content of `~/result`; `condition` is empty if the result has no condition number."""
    brief: dict[str, Any] = {name: str(path.absolute()) for name, path in job.files.items()}
    brief |= {"condition_number": float(condition)} if condition else {}
    rms = getattr(job.result, "residual_rms", ())
    joints = getattr(job.result, "joint_names", ())
    if np.size(rms) == len(joints) > 0:
        brief["residual_rms"] = {name: float(f"{value:.3g}") for name, value in zip(joints, rms, strict=True)}
    return brief | {"warnings": len(job.warnings), "missing": list(job.missing)}


class IdentificationNode(Node):
    """Node that identifies on request; the last result stays on `~/result` for late subscribers.

    Args:
        kind: key of `KINDS`.
        parameters: parameters of the node, including those of the kind.

    Attributes:
        settings: values of the parameters at the start.
        convention: meaning of effort in the recordings.
        robot: model of the arm.
        estimator: estimator of the kind, with the settings of the node.
        bag: folder of the recorder's last bag; empty before the first.
        result: publisher of `~/result`.

    Raises:
        DynidError: a setting is invalid.
    """

    def __init__(self, name: str, kind: str, parameters: Sequence[NodeParameter]) -> None:
        super().__init__(name)
        self.settings = declare(self, parameters)
        self.convention = self._convention()
        self.robot = robot_model(self, self.settings)
        self.kind = kind
        self._command = kind
        self.estimator = self._estimator()
        self._table = tuple(parameters)
        self._adjustable = [parameter for parameter in parameters if parameter.adjustable]
        self.bag = ""
        self._outcome: tuple[bytes, str] = (OK, "no identification yet")
        self._condition = ""
        self._seconds = ""
        self._since: float | None = None
        self._watch: Watch | None = None
        self._background = Background(self)
        self.create_subscription(String, self.settings.bag_topic, self._on_bag, LATCHED)
        self.result = self.create_publisher(String, "~/result", LATCHED)
        self._state = self.create_publisher(String, "~/state", LATCHED)
        self._progress = self.create_publisher(Float32, "~/progress", LATCHED)
        self._state.publish(String(data="idle"))
        self.create_service(Trigger, "~/cancel", answer(self, self.cancel))
        self.create_timer(PROGRESS_PERIOD_S, self._publish_progress)
        # A fit does not delay other callbacks.
        self.create_service(
            Trigger,
            "~/identify",
            answer_later(self, self.identify, lambda: self.settings.answer_at_once),
            callback_group=ReentrantCallbackGroup(),
        )
        Diagnostics(self, self.status, hardware=self.robot.name)

    def _estimator(self) -> Any:
        """Return the estimator with the settings of the node."""
        return KINDS[self.kind].build(self.robot, self._values(), **self._files())

    def _values(self) -> dict[str, Any]:
        return setting_arguments(KINDS[self.kind].settings(), self.settings)

    def _files(self) -> dict[str, Path | None]:
        paths = {file.name: getattr(self.settings, f"{file.name}_file") for file in KINDS[self.kind].files}
        return {name: Path(path) if path else None for name, path in paths.items()}

    def _convention(self) -> EffortConvention:
        if not hasattr(self.settings, "effort_convention"):
            return EffortConvention("torque")  # without effect: this kind uses no torques
        settings = self.settings
        gains = [gain for gain in settings.motor_gains if gain] or None
        if settings.effort_convention != IMPEDANCE:
            return EffortConvention(settings.effort_convention, gains)
        delay = None if isnan(settings.command_delay) else settings.command_delay
        if not (any(settings.stiffness) or any(settings.damping)):  # the commands have the gains
            return EffortConvention(IMPEDANCE, gains, delay=delay)
        stiffness = list(settings.stiffness)
        return EffortConvention(IMPEDANCE, gains, stiffness=stiffness, damping=list(settings.damping), delay=delay)

    def chosen(self) -> SimpleNamespace:
        """Return the present values of the adjustable parameters."""
        return read_values(self, self._adjustable)

    async def identify(self) -> str:
        """Read the recordings, fit, write the files, publish the result, and return the verdict in one line."""
        if self._since is not None:
            raise DynidError(f"identifying for {time.monotonic() - self._since:.0f} s already; wait for its answer")
        self._since = time.monotonic()
        self._watch = Watch()
        self._publish_progress()
        try:
            job = await self._background.result(partial(self._watched, self._watch))
        except Exception as error:
            text = str(error)
            if not isinstance(error, DynidError):
                text = f"the identification failed: {type(error).__name__}: {error}"
            self._outcome = (OK if isinstance(error, Cancelled) else ERROR, text)
            self._state.publish(String(data=text))
            raise
        finally:
            self._seconds = f"{time.monotonic() - self._since:.1f}"
            self._since = None
            self._watch = None
        screen = job.screen()
        self._publish_result(job, screen.text())
        self._take(job)
        if job.missing:
            problem = f"not enough: {'; '.join(job.missing)}; what is known is in {self.settings.output}"
            self._outcome = (ERROR, problem)
            self._state.publish(String(data=problem))
            raise DynidError(problem)
        warnings = [f"Warning: {warning}." for warning in job.warnings[:MAX_REMARKS]]
        return " ".join([*screen.verdict, *warnings, f"Results in {self.settings.output}."])

    def _publish_result(self, job: IdentificationRun, summary: str) -> None:
        """Publish result, outcome and progress of a run, and log its summary."""
        condition = getattr(job.result, "condition_number", None)
        self._condition = "" if condition is None else f"{condition:.3g}"
        self._outcome = (OK, "identified" if condition is None else f"identified, condition number {self._condition}")
        self.result.publish(String(data=brief_yaml(_brief_result(job, self._condition))))
        self.get_logger().info(summary)
        if not job.missing:
            self._state.publish(String(data=f"{self._outcome[1]}\n{summary}"))
        self._progress.publish(Float32(data=1.0))

    def cancel(self) -> str:
        """End the running identification at its next step."""
        if self._watch is None:
            raise DynidError("nothing to cancel: no identification runs")
        self._watch.cancel()
        return "the identification ends without a result"

    def status(self) -> Status:
        """Return the outcome of the last identification, or how long one has been running."""
        chosen = self.chosen()
        values: dict[str, object] = {
            "recording": chosen.recording or self.bag,
            "output": self.settings.output,
            "condition_number": self._condition,
            "seconds": self._seconds,
        }
        if self._since is not None:
            values["step"] = str(self._watch)
            return OK, f"identifying for {time.monotonic() - self._since:.1f} s", values
        return *self._outcome, values

    def _publish_progress(self) -> None:
        if self._watch is not None:
            self._state.publish(String(data=f"identifying: {self._watch}"))
            self._progress.publish(Float32(data=self._watch.whole))

    def _watched(self, watch: Watch) -> IdentificationRun:
        """Run the identification under a watch, in a background thread."""
        with watching(watch):
            return self._identify()

    def _identify(self) -> IdentificationRun:
        """Run the identification on the chosen recordings, in a background thread."""
        chosen = self.chosen()
        paths = {FITTED.name: self._fitted(chosen)}
        for role in KINDS[self.kind].roles:
            if role.name != FITTED.name:
                paths[role.name] = list(filter(None, [getattr(chosen, role.parameter)]))
        recordings = self._with_delay({role: [self._read(path) for path in group] for role, group in paths.items()})
        job = run(self.kind, self.estimator, recordings, self.settings.output)
        try:
            write_node_run(
                self._command,
                self._table,
                self.settings,
                urdf=str(self.robot.urdf),
                recordings=paths,
                results=job.files.values(),
                more=self._more_options(job),
            )
        except DynidError as error:  # no failure, because the results are already written
            self.get_logger().warning(f"no run file was written: {error}")
        return job

    def _more_options(self, job: IdentificationRun) -> dict[str, Any]:  # noqa: ARG002 - for nodes with further options
        """Return further options of `dynid identify` that repeat the run."""
        return {}

    def _with_delay(self, recordings: dict[str, list[Recording]]) -> dict[str, list[Recording]]:
        """Return the recordings with the delay of the commands, estimated in the fitted ones if it is unknown."""
        groups = recordings.values()
        unknown = next((group for group in groups if any(recording.delay_is_unknown for recording in group)), None)
        if unknown is None:
            return recordings
        try:
            selected = [recording.select(self.robot.joint_names) for recording in unknown]
            delay = estimate_command_delay(selected, self.robot)
        except IdentificationError as error:  # no failure, because an identification from poses needs no delay
            self.get_logger().warning(str(error))
            return recordings
        return {
            role: [at_delay(recording, delay) if recording.delay_is_unknown else recording for recording in group]
            for role, group in recordings.items()
        }

    def _fitted(self, chosen: SimpleNamespace) -> list[str]:
        """Return the recordings to fit: the chosen ones, or the recorder's last bag."""
        path = chosen.recording or self.bag
        if not path:
            raise DynidError(
                "No recording: set parameter 'recording', or record with the recorder "
                f"(nothing on {self.settings.bag_topic} yet)"
            )
        return [path, *filter(None, chosen.more_recordings)]

    def _take(self, job: IdentificationRun) -> None:
        """Use the result; called after it was published on `~/result`."""

    def _read(self, path: str) -> Recording:
        """Read a recording with the topics and the effort convention of the settings."""
        topics: dict[str, Any] = {name: getattr(self.settings, name, "") or None for name in READ_TOPICS}
        names = self.robot.joint_names
        return Recording.read(Path(path), joint_names=names, effort_convention=self.convention, **topics)

    def _on_bag(self, message: String) -> None:
        self.bag = message.data


def write_node_run(
    kind: str,
    parameters: Iterable[NodeParameter],
    settings: SimpleNamespace,
    *,
    urdf: str,
    recordings: Mapping[str, Sequence[str]],
    results: Iterable[Path],
    more: Mapping[str, object],
) -> Path:
    """Write the run file beside the results of a node, from which `dynid run` repeats the identification.

    Args:
        kind: key of `KINDS` that is a command of `dynid identify`.
        parameters: parameters of the node.
        settings: their values.
        urdf: text of the URDF.
        recordings: paths of recordings by the names of the kind's roles.
        results: written files.
        more: further options by name.

    Raises:
        RunFileError: another file has the name of the run file.
    """
    output = Path(settings.output)
    changed = {
        parameter.name: value
        for parameter in parameters
        if repr(value := getattr(settings, parameter.name)) != repr(parameter.default)
    }
    description = settings.robot_description
    if not description or is_urdf_text(description):
        description = write_atomically(output / RUN_URDF_FILE, urdf)
    # Options of the robot, of topics and effort, of recordings, of files, and of the estimator, in this order.
    options: dict[str, Any] = {"urdf": Path(description)}
    options |= {option: changed[name] for name, option in ROBOT_OPTIONS.items() if name in changed}
    if "hold" in options:
        options["hold"] = [joint.strip() for joint in options["hold"].split(",") if joint.strip()]
    options |= {name: changed[name] for name in (*READ_TOPICS, *EFFORT_OPTIONS) if name in changed}
    for role in KINDS[kind].roles:
        if paths := recordings.get(role.name):
            options[role.option.replace("-", "_")] = [Path(path) for path in paths]
    options |= {file.name: changed[name] for file in KINDS[kind].files if (name := f"{file.name}_file") in changed}
    options |= {
        setting.name: _option_value(setting, changed[setting.name])
        for setting in KINDS[kind].settings()
        if setting.name in changed
    }
    files = {
        name: Path(options[name]) for name in ("srdf", *(file.name for file in KINDS[kind].files)) if name in options
    }
    return write_run_file(f"identify {kind}", {**options, **files, **more, "output": output}, results)


def _option_value(setting: Setting, value: Any) -> Any:
    """Return the value of a parameter in the form of its option: a list of texts becomes one text with commas."""
    if not setting.is_texts:
        return value
    texts = [text for text in value if text]
    return [text.split(",") for text in texts] if setting.parts else ",".join(texts)
