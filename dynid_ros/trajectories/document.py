"""Reading the YAML files of motions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import MEGABYTE, read_yaml

LARGEST_FILE = 50 * MEGABYTE


@contextmanager
def document(path: str | Path, what: str, form: str) -> Iterator[dict]:
    """Content of a safe YAML file of `form`, a `what`; what goes wrong in the block names the file too.

    Raises:
        TrajectoryError: the file cannot be read, is not safe YAML, is not of that format, or lacks or garbles an entry.

    """
    try:
        content = read_yaml(path, LARGEST_FILE)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrajectoryError(f"cannot read {what} '{path}' ({reason}); give one that was planned here") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise TrajectoryError(f"'{path}' is not a {what}: expected 'format: {form}'")
    try:
        yield content
    except KeyError as error:
        raise TrajectoryError(f"{what} '{path}' lacks the entry {error}") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else "an entry is of another kind"
        raise TrajectoryError(f"{what} '{path}' is malformed: {reason}; give one that was planned here") from error
    except TrajectoryError as error:
        raise TrajectoryError(f"{what} '{path}': {error}") from error
