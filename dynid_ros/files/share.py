"""Files that come with the package, wherever it was installed."""

from pathlib import Path

from dynid_ros.errors import DynidError


def share_path(name: str) -> Path:
    """Return the path of a file such as `config/simulator.yaml`, in the source tree or in `share/dynid_ros`.

    The prefix is searched above this file, so that pip, colcon (merged or not) and Debian packages work, and a
    second installation on AMENT_PREFIX_PATH is not confused with this one.

    Raises:
        DynidError: the installation lacks that file.
    """
    package = Path(__file__).resolve().parents[1]
    folders = [package.parent, *(parent / "share" / "dynid_ros" for parent in package.parents)]
    for folder in folders:
        if (folder / "package.xml").is_file() and (folder / name).exists():
            return folder / name
    raise DynidError(
        f"{name} was not found beside {package} nor in share/dynid_ros above it; install the package again"
    )
