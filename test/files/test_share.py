"""Test that the package finds its own files in each kind of installation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import share_path

ROOT = Path(__file__).resolve().parents[2]


def test_finds_files_in_the_source_tree():
    assert share_path("package.xml") == ROOT / "package.xml"
    assert share_path("config").is_dir()


@pytest.mark.parametrize("site_packages", ["lib/python3.12/site-packages", "local/lib/python3.12/dist-packages"])
def test_finds_files_in_an_installation_prefix(tmp_path, site_packages):
    package = tmp_path / site_packages / "dynid_ros"
    package.mkdir(parents=True)
    for name in ("__init__.py", "errors.py"):
        shutil.copy(ROOT / "dynid_ros" / name, package)
    shutil.copytree(ROOT / "dynid_ros/files", package / "files")
    share = tmp_path / "share" / "dynid_ros"
    (share / "config").mkdir(parents=True)
    shutil.copy(ROOT / "package.xml", share)
    code = "from dynid_ros.files.bounded import share_path; print(share_path('config'))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=package.parent, capture_output=True, text=True, check=True)
    assert Path(result.stdout.strip()) == share / "config"


def test_reports_missing_files():
    with pytest.raises(DynidError, match=r"config/nowhere\.yaml"):
        share_path("config/nowhere.yaml")
