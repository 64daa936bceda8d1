"""Skip the rendering of report pictures, which takes most of the time of a report."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def unrendered() -> Iterator[None]:
    """Replace matplotlib's rendering by an empty file; the drawing code still runs."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - node tests run without matplotlib

    empty = {"svg": "<svg></svg>", "png": b"\x89PNG"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _, file, **options: file.write(empty[options["format"]]))
        yield
