"""Test that the documentation site builds without warnings, like on docs.ros.org."""

import subprocess
import sys

import pytest
from doc_pages import ROOT, links

pytest.importorskip("myst_parser", reason="sphinx and myst-parser are not installed")


@pytest.mark.slow
def test_site_is_built_without_warnings(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", tmp_path]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    first = (tmp_path / "index.html").read_text(encoding="utf-8")
    for page in ("first_hour", "results", "links"):
        assert f'href="{page}.html' in first
    assert (tmp_path / "_images" / "drop.png").is_file()
    assert not [link for link in links(ROOT / "README.md") if f'href="{link}"' in first and not link.startswith("http")]
