"""Definitions of ROS message types, as a bag carries them."""

import os
from pathlib import Path
from typing import cast

from rosbags.interfaces import Nodetype
from rosbags.interfaces.typing import FieldDesc
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from dynid_ros.errors import RecordingError


def distribution_types() -> Typestore:
    """Standard types of the ROS distribution in use (`ROS_DISTRO`), else of the newest known."""
    name = f"ROS2_{os.environ.get('ROS_DISTRO', '').upper()}"
    return get_typestore(Stores[name] if name in Stores.__members__ else Stores.LATEST)


def learn(types: Typestore, msgtype: str) -> None:
    """Make sure that `types` defines `msgtype` ("package/msg/Name"): from the installed packages if it does not yet.

    Raises:
        RecordingError: no package under AMENT_PREFIX_PATH has its .msg file.

    """
    new = {}
    wanted = [msgtype]
    while wanted:
        name = wanted.pop()
        if name in types.fielddefs or name in new:
            continue
        try:
            new.update(get_types_from_msg(_definition_file(name).read_text(), name))
        except (OSError, TypesysError) as error:
            raise RecordingError(f"message type {name}: its definition cannot be read ({error})") from error
        wanted += [field for _, description in new[name][1] for field in _named_types(description)]
    types.register(new)


def _definition_file(msgtype: str) -> Path:
    package, kind, name = msgtype.split("/")
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    for prefix in prefixes:
        file = Path(prefix) / "share" / package / kind / f"{name}.msg"
        if file.is_file():
            return file
    raise RecordingError(
        f"message type {msgtype} is unknown: no {package}/{kind}/{name}.msg under AMENT_PREFIX_PATH; install and "
        "source its package"
    )


def _named_types(description: FieldDesc) -> list[str]:
    """Message types that a field is made of."""
    if description[0] in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        description = cast(FieldDesc, description[1][0])
    return [str(description[1])] if description[0] == Nodetype.NAME else []
