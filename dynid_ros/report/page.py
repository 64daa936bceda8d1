"""Templates and the one self-contained page that they make."""

from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dynid_ros.files import write_atomically
from dynid_ros.report import formats
from dynid_ros.report.palette import DARK, LIGHT


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
