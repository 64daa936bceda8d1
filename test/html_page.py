"""Parse HTML reports and assert what each report must satisfy."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = '<script>alert("$x$")</script>--><b>&'


class Page(HTMLParser):
    """HTML page: text, ids, attributes and tags; parsing asserts that tags close in order."""

    def __init__(self, markup: str):
        super().__init__()
        self.tags = set()
        self.ids = []
        self.attributes = []
        self.words = []
        self.open = []
        self.style = ""
        self.metas = []
        self.pictures = []
        self.classes = []
        self.loose = []
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
    """Assert that a page has no script, loads nothing, and that its references lead to its own unique ids."""
    assert_readable(page)
    assert not re.search(r"url\(|@import", page.style)
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    for name, value in page.attributes:
        assert name not in {"src", "srcset", "data"}
        assert name not in {"href", "xlink:href"} or value.startswith("#")
        assert "http" not in (value or "")
    assert len(page.ids) == len(set(page.ids)), "ids must be unique on a page"
    references = {value[1:] for name, value in page.attributes if name == "href"}
    clips = {match for _, value in page.attributes for match in re.findall(r"url\(#(\w+)\)", value or "")}
    assert references | clips <= set(page.ids)


def assert_readable(page: Page) -> None:
    """Assert that a page suits telephones, dark mode and screen readers."""
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.metas
    assert "prefers-color-scheme: dark" in page.style
    assert page.loose == [], "a table is wider than a telephone, and scrolls in a box of class table"
    assert re.search(r"\.table \{[^}]*overflow-x: auto", page.style)
    assert re.search(r"\nsvg \{[^}]*width: 100%", page.style)
    for picture in page.pictures:
        has_label = picture.get("role") == "img" and picture.get("aria-label", "").strip()
        assert has_label or picture.get("aria-hidden") == "true", picture


def assert_themed(page: Page) -> None:
    """Assert that plots take their colors from the theme of the page."""
    styles = [value for name, value in page.attributes if name == "style"]
    assert any("var(--identified)" in style for style in styles)
    assert [style for style in styles if re.search(r"#[0-9a-f]{3,6}\b", style)] == []
