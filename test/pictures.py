"""Pictures of reports, drawn and not rendered: that takes most of the time of a report, and few tests look at one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def unrendered() -> Iterator[None]:
    """Each is empty; what draws it runs all the same."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - whoever runs tests of nodes alone needs none

    empty = {"svg": "<svg></svg>", "png": b"\x89PNG"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _, file, **options: file.write(empty[options["format"]]))
        yield
