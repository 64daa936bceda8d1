"""Test the documentation: links, commands with their options, names and quoted messages."""

import argparse
import ast
import importlib
import re
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest
from doc_pages import (
    PAGES,
    ROOT,
    anchors,
    block_commands,
    exists,
    inline_commands,
    inline_names,
    is_said,
    links,
    python_imports,
    quotations,
    text,
    words_of,
)

from dynid_ros import cli
from dynid_ros.nodes import module_of

NODES_SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "dynid_ros" / "nodes").rglob("*.py"))
NODES = sorted(path.stem for path in (ROOT / "config").glob("*.yaml"))
ROS2_VERBS = {"bag", "control", "daemon", "doctor", "interface", "node", "pkg"}
TRANSITIONS = {"configure", "activate", "deactivate", "cleanup", "shutdown"}
CONTROLLERS = {"joint_trajectory_controller", "forward_effort_controller"}  # their parameters: test/config

for_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@for_each_page
def test_link_targets_exist(page):
    for link in links(page):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_readme_links_to_each_page(page):
    assert f"docs/{page.name}" in {link.partition("#")[0] for link in links(ROOT / "README.md")}


@for_each_page
def test_commands_of_blocks_are_valid(page):
    for words in block_commands(page):
        if words[0] == "dynid":
            cli._parser().parse_args(words[1:])
        check_command(words)


@for_each_page
def test_commands_in_text_exist(page):
    for words in inline_commands(page):
        check_command(words)


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "robots").glob("*.yaml")), ids=lambda path: path.stem)
def test_commands_of_configurations_exist(path):
    for line in re.findall(r"^#   (ros2 .*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        check_command(words_of(line))


def check_command(words: list[str]) -> None:
    {"dynid": check_dynid, "ros2": check_ros2, "make": check_make, "python": check_python}[words[0]](words[1:])


def check_dynid(words: list[str]) -> None:
    """Assert that each word of a `dynid` command and each option exists."""
    parser = cli._parser()
    options = set(parser._option_string_actions)
    names = iter(words)
    while commands := [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]:
        name = next(names, None)
        if name is None or name.startswith("-"):
            break
        assert name in commands[0].choices, " ".join(words)
        parser = commands[0].choices[name]
        parser.build()
        options |= set(parser._option_string_actions)
    for word in takewhile("--ros-args".__ne__, words):
        assert not re.match(r"--?[a-z]", word) or word.split("=")[0] in options, f"{word} in {' '.join(words)}"


def check_make(words: list[str]) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert not words or words[0] in targets, words


def check_python(words: list[str]) -> None:
    if words[0] == "-m" and words[1].startswith("benchmarks."):
        assert (ROOT / f"{words[1].replace('.', '/')}.py").is_file(), words
    elif words[0].endswith(".py"):
        assert (ROOT / words[0]).is_file(), words


def check_ros2(words: list[str]) -> None:
    verb = words[0]
    rest = words[1:]
    if verb in ("run", "launch") and rest[0] != "dynid_ros":
        return
    if verb == "run":
        assert rest[1] in NODES, words
        check_parameters(rest[1], re.findall(r"-p (\w+):=", " ".join(rest)))
    elif verb == "launch":
        check_launch(rest[1], rest[2:])
    elif verb == "param" and len(rest) > 1 and rest[1].rpartition("/")[2] not in CONTROLLERS:
        check_parameters(node_of(rest[1]), rest[2:3], live=rest[0] == "set")
    elif verb == "lifecycle":
        assert node_of(rest[1]) == "gravity_compensation", words
        assert rest[0] != "set" or rest[2] in TRANSITIONS, words
    elif verb == "service":
        *_, node, service = rest[1].split("/")
        assert node in NODES, words
        assert re.search(rf'"(~/)?{service}"', NODES_SOURCE), words
        assert len(rest) < 3 or rest[2] in ("std_srvs/srv/Trigger", "std_srvs/srv/SetBool"), words
    elif verb == "topic":
        topic = next((word for word in rest[1:] if word.startswith("/")), "/")
        *_, node, name = topic.rsplit("/", 2)
        assert node not in NODES or f'"~/{name}"' in NODES_SOURCE, words
    elif verb != "param":
        assert verb in ROS2_VERBS, words


def node_of(name: str) -> str:
    node = name.rsplit("/", 1)[-1]
    assert node in NODES, name
    return node


def check_parameters(node: str, names: list[str], *, live: bool = False) -> None:
    pytest.importorskip("rclpy")
    table = {row.name: row for row in importlib.import_module(module_of(node)).PARAMETERS}
    for name in names:
        assert name in table, f"{node} has no parameter {name}"
        assert not live or table[name].adjustable, f"{name} of {node} is read at the start only"


def check_launch(name: str, arguments: list[str]) -> None:
    """Assert that arguments are parameters of the file's nodes or declared by the file."""
    path = ROOT / "launch" / name
    assert path.is_file(), name
    sources = (path, ROOT / "dynid_ros" / "nodes" / "shared" / "parameters.py")
    nodes = (node for source in sources for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    arguments_by_name = dict(argument.split(":=", 1) for argument in arguments if not argument.startswith("--"))
    started = [node for node in NODES if node in words]
    for argument, value in arguments_by_name.items():
        if "/config/" in value:
            assert (ROOT / value[value.index("config/") :]).is_file(), value
        if argument in ("params_file", "namespace", "use_sim_time", "log_level"):
            continue
        pytest.importorskip("rclpy")
        tables = [importlib.import_module(module_of(node)).PARAMETERS for node in started]
        if not any(row.name == argument for table in tables for row in table):
            assert argument in words, f"{name} has no {argument}"
            assert value in words or Path(value).suffix or "/" in value, f"{argument}:={value} for {name}"


FOREIGN_NAMES = {
    "chirp_motion",
    "command_interface_configuration",
    "imu_sensor_broadcaster",
    "on_export_reference_interfaces",
    "prepare_command_mode_switch",
    "sim_speed_factor",
    "state_interface_configuration",
    "tau_ext",
    "trapezoidal_motion",
    "update_reference_from_subscribers",
}
"""Names of ros2_control, drivers, files and data sets of other projects."""
GENERATED = "arm_"
"""Prefix of the names in an exported arm."""


@for_each_page
def test_names_in_text_exist_in_the_sources(page):
    """Names are modules, paths and words with underscores; renamed ones are detected."""
    for name in inline_names(page) - FOREIGN_NAMES:
        assert name.startswith(GENERATED) or exists(name), f"{page.name} names `{name}`, which is gone"


@for_each_page
def test_titles_have_at_most_four_words(page):
    title = text(page).splitlines()[0].removeprefix("# ")
    assert len(title.split()) <= 4
    assert not set(title) & set(":.?,")


def test_each_page_is_once_in_the_navigation():
    listed = re.findall(r"^(\w+)$", text(ROOT / "docs" / "index.md"), re.MULTILINE)
    assert sorted(listed) == sorted(page.stem for page in PAGES[1:])


@for_each_page
def test_imports_of_python_blocks_work(page):
    for line in python_imports(page):
        exec(line, {})


IDENTIFICATIONS = ("gravity", "links", "loads", "online", "flexible", "torque_sensors", "mocap", "force_sensor")
HEADINGS = ["Commands", "Requirements", "Output", "When it fails", "Method"]


@pytest.mark.parametrize("name", IDENTIFICATIONS)
def test_identification_pages_have_the_same_headings(name):
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[: len(HEADINGS)] == HEADINGS


def test_quoted_messages_are_in_the_code():
    """Of all pages at once: the strings of the package are collected by one process."""
    assert not [(page.name, quotation) for page in PAGES for quotation in quotations(page) if not is_said(quotation)]


def test_make_without_a_target_lists_the_targets():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    output = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"^make ([\w-]+)", output, re.MULTILINE)) == set(targets.split()) - {"help", "pytest"}
