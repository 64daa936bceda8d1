"""What a condition number means."""

from typing import NamedTuple

import numpy as np

WELL_CONDITIONED = 30.0
ILL_CONDITIONED = 300.0


class Condition(NamedTuple):
    """In a few words, which grade the experiment and not its result, and in a paragraph."""

    word: str
    explanation: str


def condition(
    number: float,
    more: str = "more varied poses",
    remedy: str = "Let the joints turn further, in more varied poses of the others.",
) -> Condition:
    """Explain the condition number of an experiment; `more` of what would help, and a sentence on what must be done."""
    if not np.isfinite(number):
        word, meaning = "not known", "The file holds no condition number."
    elif number < WELL_CONDITIONED:
        word, meaning = "the experiment tells unknowns well apart", "This experiment tells all unknowns well apart."
    elif number < ILL_CONDITIONED:
        word, meaning = (
            "the experiment tells unknowns apart",
            f"This experiment tells the unknowns apart; {more} would narrow the intervals.",
        )
    else:
        word = "the experiment barely tells unknowns apart"
        meaning = (
            f"This experiment barely tells some unknowns apart: small errors of the sensors become large ones. {remedy}"
        )
    return Condition(
        word,
        "The condition number says how much less certain the least certain combination of unknowns is than the most "
        f"certain one: 1 is ideal, up to {WELL_CONDITIONED:.0f} is good, above {ILL_CONDITIONED:.0f} is poor. "
        f"{meaning}",
    )
