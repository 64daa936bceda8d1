"""Files: written whole or not at all, read within bounds, YAML without surprises."""

from dynid_ros.files.atomic import atomic_file, write_atomically
from dynid_ros.files.bounded import MEGABYTE, read_bytes, read_text, require_file
from dynid_ros.files.plain_yaml import parse_yaml, read_yaml

__all__ = [
    "MEGABYTE",
    "atomic_file",
    "parse_yaml",
    "read_bytes",
    "read_text",
    "read_yaml",
    "require_file",
    "write_atomically",
]
