"""Files: written whole or not at all, read within bounds, YAML without surprises, names quoted."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.files.atomic import (
        all_or_none,
        atomic_file,
        input_paths,
        locked_folder,
        paths_in,
        protected,
        remove,
        writable_file,
        writable_folder,
        write_atomically,
    )
    from dynid_ros.files.bounded import MEGABYTE, read_bytes, read_text, require_file
    from dynid_ros.files.plain_yaml import comment_text, csv_line, parse_yaml, read_yaml, require_name, yaml_text

__all__ = [
    "MEGABYTE",
    "all_or_none",
    "atomic_file",
    "comment_text",
    "csv_line",
    "input_paths",
    "locked_folder",
    "parse_yaml",
    "paths_in",
    "protected",
    "read_bytes",
    "read_text",
    "read_yaml",
    "remove",
    "require_file",
    "require_name",
    "writable_file",
    "writable_folder",
    "write_atomically",
    "yaml_text",
]

offer(globals())
