"""Reading the YAML files of motions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from dynid_ros.errors import TrajectoryError


@contextmanager
def document(path: str | Path, what: str, form: str) -> Iterator[dict]:
    """Content of a safe YAML file of `form`, a `what`; what goes wrong in the block names the file too.

    Raises:
        TrajectoryError: the file cannot be read, is not safe YAML, is not of that format, or lacks or garbles an entry.

    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrajectoryError(f"cannot read {what} '{path}': {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise TrajectoryError(f"'{path}' is not a {what}: expected 'format: {form}'")
    try:
        yield content
    except KeyError as error:
        raise TrajectoryError(f"{what} '{path}' lacks the entry {error}") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise TrajectoryError(f"{what} '{path}' is malformed: {error}") from error
    except TrajectoryError as error:
        raise TrajectoryError(f"{what} '{path}': {error}") from error
