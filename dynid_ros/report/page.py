"""Templates and the one self-contained page that they make."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dynid_ros.files import write_atomically
from dynid_ros.report import formats
from dynid_ros.report.drawing import DARK, LIGHT

# What a condition number means.


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


class Tile(NamedTuple):
    """One number that counts, at the top of the page."""

    label: str
    value: str
    note: str


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.globals.update(light=LIGHT, dark=DARK)
for function in (
    formats.significant,
    formats.with_unit,
    formats.fixed,
    formats.brief,
    formats.as_fine_as,
    formats.percent,
    formats.share,
    formats.distance,
    formats.counted,
    formats.unbroken,
):
    ENVIRONMENT.filters[function.__name__] = function


def write_page(path: str | Path, template: str, **content: object) -> Path:
    """Fill `template` with `content` and write it; all text is escaped, pictures are marked safe in the template."""
    return write_atomically(path, ENVIRONMENT.get_template(template).render(content))
