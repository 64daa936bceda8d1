"""The pages as a site, as docs.ros.org has it: `sphinx-build -W docs site`, or rosdoc2, which reads rosdoc2.yaml."""

import re
from pathlib import Path
from xml.etree import ElementTree

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ElementTree.parse(ROOT / "package.xml").getroot()
REPOSITORY = PACKAGE.findtext("url[@type='repository']")

project = PACKAGE.findtext("name")
version = release = PACKAGE.findtext("version")
author = PACKAGE.findtext("author")
copyright = f"{author}, Apache-2.0"  # noqa: A001 (the name is Sphinx's)
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "alabaster"
html_static_path = ["_static"]
html_theme_options = {"description": " ".join(PACKAGE.findtext("description").split()), "page_width": "min(96%, 90em)"}


def add_readme(_app: Sphinx, page: str, source: list[str]) -> None:
    """Begin the first page with the README, whose links are from the root of the repository."""
    if page == "index":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        readme = re.sub(r"\]\((?!https?:|#|docs/)", f"]({REPOSITORY}/blob/main/", readme)
        source[0] = readme.replace("](docs/", "](") + "\n" + source[0]


def setup(app: Sphinx) -> None:
    """Connect the page of the README; Sphinx calls this."""
    app.connect("source-read", add_readme)
