"""A fuzzing target: a strategy of inputs, and the function that reads and judges them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.outcome import Tally
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

BATCH = 1000
"""Inputs of one run of Hypothesis, which remembers all inputs of a run."""


@dataclass(frozen=True)
class Target:
    """Inputs and their reader.

    Attributes:
        name: short name.
        inputs: strategy of inputs, most of them invalid.
        read: reads an input in a folder for files; raises `Nonsense` where it accepts invalid content.
        seeds: valid inputs for a coverage-guided fuzzer; empty unless inputs are bytes.
        share: weight among all targets.
    """

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any, Path], None]
    seeds: Sequence[bytes] = ()
    share: float = 1.0


def fuzz(target: Target, count: int, first_seed: int, folder: Path, tally: Tally | None = None) -> Tally:
    """Read `count` inputs and return the tally of their outcomes."""
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
