"""Installation with colcon (ament_python) or pip.

A wheel brings the command `dynid` alone, which has the nodes as `dynid node NAME`: `recorder` or `simulator` in
everybody's PATH could be anyone's. colcon puts the nodes into lib/dynid_ros, where `ros2 run` and launch files find
them.
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

# Whoever makes a wheel, or its metadata, gives one of these commands (PEP 517); colcon and Debian's tools do not.
FOR_WHEEL = not {"bdist_wheel", "dist_info", "editable_wheel"}.isdisjoint(sys.argv)
NODES = {} if FOR_WHEEL else {path.stem: f"nodes.{path.stem}" for path in Path("dynid_ros/nodes").glob("[!_]*.py")}
NODES |= {} if FOR_WHEEL else {"demo": "demo.coordinator"}

PACKAGE = ElementTree.parse("package.xml").getroot()
URLS = {url.get("type"): url.text for url in PACKAGE.findall("url")}
# Links of the README are from the root of the repository; a page elsewhere shows them from there.
README = re.sub(
    r"\]\((?!https?:|#)",
    f"]({URLS['repository']}/blob/main/",
    Path(__file__).resolve().with_name("README.md").read_text(encoding="utf-8"),
)

setup(
    name="dynid_ros",
    version="0.1.0",
    description="Excite, record, identify and compensate the dynamics of a serial arm",
    long_description=README,
    long_description_content_type="text/markdown",
    url=URLS["website"],
    project_urls={"Source": URLS["repository"], "Issues": URLS["bugtracker"]},
    license="Apache-2.0",
    maintainer="dynid_ros maintainers",
    maintainer_email="dynid_ros@users.noreply.github.com",
    packages=find_packages(include=["dynid_ros", "dynid_ros.*"]),
    package_data={
        "dynid_ros": ["py.typed"],
        "dynid_ros.guide": ["page.html"],
        "dynid_ros.report": ["templates/*"],
        "dynid_ros.export": ["controller_package/*"],
    },
    data_files=[
        *([] if FOR_WHEEL else [("bin", ["bin/dynid"])]),
        ("share/ament_index/resource_index/packages", ["resource/dynid_ros"]),
        ("share/dynid_ros", ["package.xml"]),
        *(
            (f"share/dynid_ros/{folder}", sorted(str(path) for path in folder.iterdir() if path.is_file()))
            for folder in sorted({path.parent for path in Path("config").rglob("*") if path.is_file()})
        ),
        ("share/dynid_ros/launch", sorted(map(str, Path("launch").glob("*.launch.py")))),
    ],
    python_requires=">=3.10",
    install_requires=[
        "jinja2",
        "matplotlib>=3.6",
        "numpy>=1.26",
        "pyyaml>=6",
        "rosbags>=0.11.6,<0.12",
        "scipy>=1.11",
        "tqdm",
        "trimesh>=4",
    ],
    extras_require={
        "sim": ["mujoco"],
        "completion": ["argcomplete>=3"],  # of `dynid` in the shell
        "c3d": ["c3d>=0.5"],  # for camera systems' binary files
        "cluster": ["distributed>=2023.5"],
        "collada": ["pycollada"],  # for meshes in .dae files
        "guide": ["viser>=1.1.1", "yourdfpy"],  # for dynid guide
        "lerobot": ["pyarrow"],  # for episodes of LeRobot datasets
        "frames": ["pandas"],  # for to_frame()
        "view": ["rerun-sdk>=0.23"],  # for dynid view
        "test": [
            "argcomplete>=3",
            "c3d>=0.5",
            "catkin_pkg",
            "distributed>=2023.5",
            "hypothesis",
            "import-linter",
            "mypy",
            "myst-parser",
            "pyarrow",
            "pycollada",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "rerun-sdk>=0.23",
            "ruff>=0.17,<0.18",
            "types-PyYAML",
            "viser>=1.1.1",
            "yourdfpy",
        ],
        "fuzz": ["atheris>=3; sys_platform == 'linux' and python_version >= '3.11' and python_version < '3.14'"],
        # What tests and benchmarks take as truth; a test skips what is not installed.
        "reference": ["clarabel", "cvxpy", "example-robot-data", "mcap-ros2-support", "pin"],
    },
    entry_points={
        "console_scripts": [
            "dynid = dynid_ros.cli:main",
            *(f"{name} = dynid_ros.{module}:main" for name, module in sorted(NODES.items())),
        ],
    },
)
