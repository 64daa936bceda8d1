"""A report as a reader gets it, and what no report may hold."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = '<script>alert("$x$")</script>--><b>&'


class Page(HTMLParser):
    """Reads a page: its text, its ids, its attributes, whether its tags close in order, and what is inside what."""

    def __init__(self, markup: str):
        super().__init__()
        self.tags, self.ids, self.attributes, self.words, self.open = set(), [], [], [], []
        self.style, self.metas, self.pictures, self.classes, self.loose = "", [], [], [], []
        self.feed(markup)
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "meta":
            self.metas.append(dict(attrs))
        if tag == "svg":
            self.pictures.append(dict(attrs))
        if tag == "table" and "table" not in self.classes:
            self.loose.append(self.getpos())
        if tag not in VOID:
            self.classes.append(dict(attrs).get("class"))
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.classes.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)
        elif self.open:
            self.style += data


def assert_self_contained(page: Page) -> None:
    """No script, nothing loaded, ids unique, every reference is to one of them; and readable as above."""
    assert_readable(page)
    assert not re.search(r"url\(|@import", page.style)
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    for name, value in page.attributes:
        assert name not in {"src", "srcset", "data"}
        assert name not in {"href", "xlink:href"} or value.startswith("#")
        assert "http" not in (value or "")
    assert len(page.ids) == len(set(page.ids)), "ids must be unique on a page"
    references = {value[1:] for name, value in page.attributes if name == "href"}
    clips = {found for _, value in page.attributes for found in re.findall(r"url\(#(\w+)\)", value or "")}
    assert references | clips <= set(page.ids)


def assert_readable(page: Page) -> None:
    """On a telephone, in the dark, and by those who hear it read."""
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.metas
    assert "prefers-color-scheme: dark" in page.style
    assert page.loose == [], "a table is wider than a telephone, and scrolls in a box of class table"
    assert re.search(r"\.table \{[^}]*overflow-x: auto", page.style)
    assert re.search(r"\nsvg \{[^}]*width: 100%", page.style)
    for picture in page.pictures:
        said = picture.get("role") == "img" and picture.get("aria-label", "").strip()
        assert said or picture.get("aria-hidden") == "true", picture


def assert_themed(page: Page) -> None:
    """Pictures have the colours of the page, and none of their own."""
    styles = [value for name, value in page.attributes if name == "style"]
    assert any("var(--identified)" in style for style in styles)
    assert [style for style in styles if re.search(r"#[0-9a-f]{3,6}\b", style)] == []
