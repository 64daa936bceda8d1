"""Where a long job is, on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says which step runs; nothing where stderr is not a terminal.

    Yields a function to call with what begins.
    """
    with tqdm(total=n_steps, disable=None, leave=False, bar_format="{desc} ({n_fmt} of {total_fmt}) {elapsed}") as line:

        def step(what: str) -> None:
            line.set_description_str(what, refresh=False)
            line.update()
            line.refresh()

        yield step
