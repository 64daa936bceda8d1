"""Pairs of links that may touch, as an SRDF of MoveIt's Setup Assistant declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from dynid_ros.errors import CollisionError, ModelError
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.srdf import read_srdf

Pairs = frozenset[frozenset[str]]


def allowed_pairs(path: str | Path, tree: LinkTree) -> Pairs:
    """Return the pairs of links that an SRDF exempts from collision checks (`disable_collisions`), for any reason."""
    where = f"SRDF '{path}'"
    try:
        root = read_srdf(path, tree.name)
    except ModelError as error:
        raise CollisionError(str(error)) from error
    pairs = list(_pairs(root, where))
    unknown = sorted({link for pair in pairs for link in pair} - set(tree.links))
    if unknown:
        raise CollisionError(
            f"{where}: its link(s) {', '.join(unknown)} are not in the URDF of '{tree.name}'; give the SRDF of "
            "this robot"
        )
    return frozenset(pairs)


def pair_of_links(words: str, links: Collection[str]) -> frozenset[str]:
    """Return the two links that "link:link" names; names may hold colons."""
    parts = words.strip().split(":")
    for k in range(1, len(parts)):
        first = ":".join(parts[:k])
        second = ":".join(parts[k:])
        if first in links and second in links and first != second:
            return frozenset((first, second))
    raise CollisionError(f"allowed_pairs: '{words}' is not link:link; the links of the robot are {', '.join(links)}")


def _pairs(root: ET.Element, where: str) -> Iterator[frozenset[str]]:
    for element in root.findall("disable_collisions"):
        links = [element.get("link1"), element.get("link2")]
        if None in links:
            raise CollisionError(f"{where}: a <disable_collisions> lacks link1 or link2; correct it")
        yield frozenset(str(link) for link in links)
