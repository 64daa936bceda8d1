"""Run file beside the results of an identification node: its parameters as options of `dynid identify`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dynid_ros.files import write_atomically
from dynid_ros.jobs.inputs import ROBOT_OPTIONS
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.jobs.run_file import write_run_file
from dynid_ros.model.urdf_text import is_urdf_text
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.settings import Setting

RUN_URDF_FILE = "experiment.urdf"
"""URDF beside the results of a node that had it as text."""
READ_TOPICS = ("joint_states_topic", "torque_topic", "command_topic", "link_states_topic")
"""Topics of a bag, where a node has such a parameter."""
EFFORT_OPTIONS = ("effort_convention", "motor_gains", "stiffness", "damping", "command_delay")


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
    given = {
        parameter.name: value
        for parameter in parameters
        if repr(value := getattr(settings, parameter.name)) != repr(parameter.default)
    }
    description = settings.robot_description
    if not description or is_urdf_text(description):
        description = write_atomically(output / RUN_URDF_FILE, urdf)
    options: dict[str, Any] = {"urdf": Path(description)}
    options |= {option: given[name] for name, option in ROBOT_OPTIONS.items() if name in given}
    if "hold" in options:
        options["hold"] = [joint.strip() for joint in options["hold"].split(",") if joint.strip()]
    options |= {name: given[name] for name in (*READ_TOPICS, *EFFORT_OPTIONS) if name in given}
    for role in KINDS[kind].roles:
        if paths := recordings.get(role.name):
            options[role.option.replace("-", "_")] = [Path(path) for path in paths]
    options |= {file.name: given[name] for file in KINDS[kind].files if (name := f"{file.name}_file") in given}
    options |= {
        setting.name: _option_value(setting, given[setting.name])
        for setting in KINDS[kind].settings()
        if setting.name in given
    }
    files = {
        name: Path(options[name]) for name in ("srdf", *(file.name for file in KINDS[kind].files)) if name in options
    }
    return write_run_file(f"identify {kind}", {**options, **files, **more, "output": output}, results)


def _option_value(setting: Setting, value: Any) -> Any:
    """Return the value of a parameter as its option has it; texts without parts are one text with commas between."""
    if not setting.is_texts:
        return value
    texts = [text for text in value if text]
    return [text.split(",") for text in texts] if setting.parts else ",".join(texts)
