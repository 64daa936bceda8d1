"""Files: written whole or not at all, read within bounds, YAML without surprises, names quoted."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.files.atomic import (
        all_or_none as all_or_none,
        atomic_file as atomic_file,
        input_paths as input_paths,
        locked_folder as locked_folder,
        paths_in as paths_in,
        protected as protected,
        remove as remove,
        writable_file as writable_file,
        writable_folder as writable_folder,
        write_atomically as write_atomically,
    )
    from dynid_ros.files.bounded import (
        MEGABYTE as MEGABYTE,
        read_bytes as read_bytes,
        read_text as read_text,
        require_file as require_file,
    )
    from dynid_ros.files.plain_yaml import (
        comment_text as comment_text,
        csv_line as csv_line,
        parse_yaml as parse_yaml,
        read_yaml as read_yaml,
        require_name as require_name,
        yaml_text as yaml_text,
    )


offer(globals())
