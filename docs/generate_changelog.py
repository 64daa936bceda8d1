"""Write CHANGELOG.rst, which bloom reads at a release (REP 132), from CHANGELOG.md: `make changelog`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PAGE = ROOT / "CHANGELOG.md", ROOT / "CHANGELOG.rst"
TITLE = "Changelog for package dynid_ros"


def page() -> str:
    """Return the whole file: a section per version, with a bullet for each kind of change."""
    lines = [".. Made of CHANGELOG.md by `make changelog`.", "", *underlined(TITLE, "^")]
    for section in SOURCE.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, *kinds = section.split("\n### ")
        lines += ["", *underlined("Forthcoming" if heading.startswith("Unreleased") else heading.splitlines()[0], "-")]
        for kind in kinds:
            name, _, changes = kind.partition("\n")
            lines += [f"* {name}", ""]
            lines += [f"  {line}".rstrip() for line in inline(changes.strip("\n")).splitlines()]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def underlined(title: str, line: str) -> list[str]:
    """Return a heading with its line."""
    return [title, line * len(title)]


def inline(text: str) -> str:
    """Code and links; what both markups write alike stays."""
    return re.sub(r"`([^`]+)`(?=(\w?))|\[([^\]]+)\]\(([^)]+)\)", _inline, text)


def _inline(found: re.Match[str]) -> str:
    code, letter, text, target = found.groups()
    return f"``{code}``" + "\\ " * bool(letter) if code else f"`{text.strip('`')} <{target}>`__"


def main() -> None:
    """Write it."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
