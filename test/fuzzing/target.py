"""What is fuzzed: inputs, and what reads them and judges what it read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.outcome import Tally
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

BATCH = 1000
"""Hypothesis remembers what it tried, which grows."""


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes:
        name: short.
        inputs: mostly spoiled ones.
        read: takes an input and a folder for files; complains by `Nonsense` of what was accepted.
        seeds: valid inputs, for a fuzzer that is led by coverage; none where inputs are no bytes.
        share: of all inputs.
    """

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any, Path], None]
    seeds: Sequence[bytes] = ()
    share: float = 1.0


def fuzz(target: Target, count: int, first_seed: int, folder: Path, tally: Tally | None = None) -> Tally:
    """Outcomes of `count` inputs."""
    tally = Tally() if tally is None else tally
    end = tally.inputs + count
    number = first_seed
    while tally.inputs < end:
        _batch(target, min(BATCH, end - tally.inputs), number, folder, tally)
        number += 1
    return tally


def _batch(target: Target, count: int, number: int, folder: Path, tally: Tally) -> None:
    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def run(data: Any) -> None:
        tally.add(lambda given_data: target.read(given_data, folder), data)

    run()
