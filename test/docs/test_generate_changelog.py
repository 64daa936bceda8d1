"""Test that CHANGELOG.md becomes a CHANGELOG.rst that bloom can read with catkin_pkg."""

import io
import re

import pytest

from docs.generate_changelog import SOURCE, page


def test_bloom_reads_all_changes():
    changelog = pytest.importorskip("catkin_pkg.changelog")
    core = pytest.importorskip("docutils.core")
    warnings = io.StringIO()
    core.publish_doctree(page(), settings_overrides={"warning_stream": warnings})
    assert warnings.getvalue() == ""
    released = page().replace("Forthcoming\n-----------", "0.2.0 (2030-01-01)\n------------------")  # like bloom
    released += "\n0.1.0 (2029-01-01)\n------------------\n* First\n"
    parsed = changelog.populate_changelog_from_rst(changelog.Changelog("dynid_ros"), released)
    changes = "".join(map(str, parsed.get_content_of_version("0.2.0")))
    for line in re.findall(r"^- ([\w ]+)", SOURCE.read_text(encoding="utf-8"), re.MULTILINE):
        assert line.strip() in changes
