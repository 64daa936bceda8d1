"""Test the structure of the repository: imports, dependencies, versions, commands and parameter files."""

import ast
import importlib
import inspect
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml

import dynid_ros
from dynid_ros.nodes import module_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dynid_ros"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Import name: name for pip, key for rosdep, or None for libraries that no distribution has.
LIBRARIES = {
    "jinja2": ("jinja2", "python3-jinja2"),
    "matplotlib": ("matplotlib", "python3-matplotlib"),
    "mujoco": ("mujoco", None),
    "numpy": ("numpy", "python3-numpy"),
    "rosbags": ("rosbags", None),
    "scipy": ("scipy", "python3-scipy"),
    "tqdm": ("tqdm", "python3-tqdm"),
    "trimesh": ("trimesh", None),
    "yaml": ("pyyaml", "python3-yaml"),
}

WITHOUT_IMPORT = {"ros2launch", "rosbag2_storage_mcap"}  # a command, and a plugin
OPTIONAL = {"c3d", "distributed", "pandas", "pyarrow", "viser", "websockets", "xacro", "yourdfpy"}
"""Libraries for xacro, cameras, LeRobot, data frames, clusters or the guide, which users install."""


def is_ros(name: str) -> bool:
    own = {"rclpy", "rcl_interfaces", "launch", "launch_ros", "rosbag2_py"}
    return name in own or name.endswith(("_msgs", "_srvs"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def syntax(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return dotted names of all modules that a file loads, also inside functions, but not for type checking only."""
    names = set()
    statements = syntax(path).body
    typing = [s for s in statements if isinstance(s, ast.If) and "TYPE_CHECKING" in ast.unparse(s.test)]
    for node in (node for s in statements if s not in typing for node in ast.walk(s)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*parents, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names} if module == "dynid_ros" else {module}
    return frozenset(names)


def outside(paths: list[Path]) -> set[str]:
    """Return top-level names that files import from neither the standard library nor this package."""
    names = {name.split(".")[0] for path in paths for name in imports(path)}
    return names - set(sys.stdlib_module_names) - {"dynid_ros"}


@cache
def setup_arguments(*commands: str) -> dict:
    """Return the arguments of `setup` in setup.py for these commands."""
    taken: dict = {}
    stand_in = SimpleNamespace(setup=taken.update, find_packages=lambda include: include)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", ["setup.py", *commands])
        patch.setitem(sys.modules, "setuptools", stand_in)
        runpy.run_path("setup.py")
    return taken


def console_scripts(*commands: str) -> dict[str, str]:
    scripts = setup_arguments(*commands)["entry_points"]["console_scripts"]
    return dict(re.split(r"\s*=\s*", script) for script in scripts)


def package_xml() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def offenders(offences: Callable[[Path], Collection[str]]) -> dict[str, list[str]]:
    """Return the offences of each file that has any."""
    assert len(SOURCES) > 200
    result = {relative(path): sorted(offences(path)) for path in SOURCES}
    return {path: names for path, names in result.items() if names}


WITH_ROS = {"dynid_ros/recording/rosbag2_bag.py"}
"""Modules that are loaded only with a sourced ROS 2."""


def test_files_import_only_allowed_modules():
    def foreign(path: Path) -> set[str]:
        room = path.relative_to(PACKAGE).parts[0]
        reference = {"pinocchio", "cvxpy"}  # for comparison in tests
        simulator = set() if room == "simulation" else {"mujoco"}
        names = outside([path])
        ros = (
            set()
            if room in ("nodes", "demo", "guide") or relative(path) in WITH_ROS
            else {name for name in names if is_ros(name)}
        )
        return names & (reference | simulator) | ros

    assert offenders(foreign) == {}


FACES = [".".join(path.parent.relative_to(ROOT).parts) for path in SOURCES if path.name == "__init__.py"]


@pytest.mark.parametrize("face", FACES)
def test_package_exports_its_listed_names(face):
    if face in ("dynid_ros.nodes", "dynid_ros.simulation"):
        pytest.importorskip("rclpy" if face == "dynid_ros.nodes" else "mujoco")
    module = importlib.import_module(face)
    names = getattr(module, "__all__", [])
    assert set(names) <= set(dir(module))
    assert not [name for name in names if inspect.ismodule(getattr(module, name))]
    files = {path.stem for path in Path(module.__path__[0]).iterdir()}
    assert not files & set(names), "importing the file would put the module in the name's place"
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018


def test_every_folder_of_sources_is_a_package():
    assert [relative(path) for path in SOURCES if not path.with_name("__init__.py").is_file()] == []


def test_no_module_imports_pyplot():
    """Avoid pyplot, which keeps figures and changes global settings."""
    uses = re.compile(r"^\s*(?:from|import) .*\bpyplot\b", re.MULTILINE)
    assert offenders(lambda path: uses.findall(path.read_text(encoding="utf-8"))) == {}


def test_files_are_short():
    def end(path: Path) -> list[str]:
        return path.read_text(encoding="utf-8").splitlines()[500:]

    assert offenders(end) == {}


def test_constants_of_one_word_are_unique():
    """Allow equal names of constants of one word only in tables of node parameters."""
    places: dict[str, set[str]] = {}
    for path in SOURCES:
        for statement in syntax(path).body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            for name in (
                part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)
            ):
                if len(name) > 1 and name.isupper() and "_" not in name:
                    places.setdefault(name, set()).add(relative(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name != "PARAMETERS"} == {}


def test_imports_are_declared_dependencies():
    launched = sorted((ROOT / "launch").glob("*.py"))
    names = outside(SOURCES + launched) - OPTIONAL
    unknown = {name for name in names if not is_ros(name)} - set(LIBRARIES)
    assert not unknown, "add it to LIBRARIES here, to setup.py and to package.xml"
    required = setup_arguments()["install_requires"] + setup_arguments()["extras_require"]["sim"]
    pip = {re.split(r"[<>=~]", requirement)[0] for requirement in required}
    assert pip == {LIBRARIES[name][0] for name in names if not is_ros(name)}
    rosdep = {element.text for element in package_xml().findall("exec_depend")}
    keys = {name if is_ros(name) else LIBRARIES[name][1] for name in names}
    assert rosdep - WITHOUT_IMPORT - OPTIONAL == keys - {None}
    assert not [key for key in rosdep if key.endswith("-pip")], "the build farm refuses them"


def test_data_files_are_installed():
    installed = {
        path
        for package, patterns in setup_arguments()["package_data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    found = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert installed == found


def test_versions_agree():
    assert setup_arguments()["version"] == dynid_ros.__version__ == package_xml().findtext("version")


def test_package_xml_satisfies_its_schema():
    xmllint = pytest.importorskip("ament_xmllint.main")
    assert xmllint.main([str(ROOT / "package.xml")]) == 0


def test_package_xml_is_valid():
    package = pytest.importorskip("catkin_pkg.package")
    warnings: list[str] = []
    manifest = package.parse_package(ROOT / "package.xml", warnings=warnings)
    manifest.validate(warnings=warnings)
    assert warnings == []
    assert manifest.package_format == 3
    assert manifest.get_build_type() == "ament_python"
    assert (ROOT / "resource" / manifest.name).is_file()


@pytest.mark.parametrize(("script", "target"), console_scripts().items())
def test_console_script_exists(script, target):
    module, function = target.split(":")
    path = ROOT / (module.replace(".", "/") + ".py")
    assert path.is_file()
    assert re.search(rf"^(def {function}\(|{function} = partial\()", path.read_text(), re.MULTILINE)
    assert module == ("dynid_ros.cli" if script == "dynid" else module_of(script))


def nodes() -> list[str]:
    return sorted(script for script, target in console_scripts().items() if script != "dynid")


# commands of colcon, pip, uv and pybuild
@pytest.mark.parametrize("commands", [("egg_info", "build", "install"), ("develop",), ("install",)])
def test_nodes_are_installed_for_ros2_run(commands):
    assert sorted(console_scripts(*commands)) == sorted(["dynid", *nodes()])
    assert ("bin", ["bin/dynid"]) in setup_arguments(*commands)["data_files"]


@pytest.mark.parametrize("command", ["bdist_wheel", "dist_info", "editable_wheel"])
def test_wheels_install_one_command(command):
    assert list(console_scripts(command)) == ["dynid"]
    assert all(folder.startswith("share/") for folder, _ in setup_arguments(command)["data_files"])


def test_every_node_is_a_console_script():
    paths = sorted((PACKAGE / "nodes").glob("*.py"))
    with_main = [path.stem for path in paths if re.search(r"\n(def main\(|main = partial\()", path.read_text())]
    assert sorted([*with_main, "demo"]) == nodes()


# The demo has one file with the parameters that differ from the nodes' own files.
OWN_FILE = [node for node in nodes() if node != "demo"]


def parameter_file(node: str) -> dict:
    return yaml.safe_load((ROOT / "config" / f"{node}.yaml").read_text(encoding="utf-8"))


def parameter_types(node: str) -> dict[str, type]:
    """Return the types of the node's parameters in the order of its table; for a list, the type of its items."""
    pytest.importorskip("rclpy")
    if node == "simulator":
        pytest.importorskip("mujoco")
    table = importlib.import_module(module_of(node)).PARAMETERS
    assert all(parameter.description for parameter in table)
    return {parameter.name: kind(parameter.default) for parameter in table}


def kind(value: object) -> type:
    return type(value[0]) if isinstance(value, list) else type(value)


@pytest.mark.parametrize("node", OWN_FILE)
def test_parameter_file_agrees_with_the_table(node):
    types = parameter_types(node)
    values = parameter_file(node)["/**"]["ros__parameters"]
    assert list(values) == list(types)
    assert {name: kind(value) for name, value in values.items()} == types


@pytest.mark.parametrize("node", nodes())
def test_demo_file_agrees_with_the_tables(node):
    types = parameter_types(node)
    for name, value in parameter_file("demo").get(node, {"ros__parameters": {}})["ros__parameters"].items():
        assert kind(value) == types[name]


def test_demo_file_names_only_nodes():
    assert set(parameter_file("demo")) <= set(nodes())


@pytest.mark.parametrize("node", OWN_FILE)
def test_parameter_file_comments_each_parameter(node):
    lines = (ROOT / "config" / f"{node}.yaml").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "ros__parameters:")
    for above, line in zip(lines[start:], lines[start + 1 :], strict=False):
        if re.match(r" +\w+:", line):
            assert " # " in line or above.lstrip().startswith("#"), f"no comment: {line.strip()}"


def test_control_loop_does_not_import_scipy():
    """Start gravity compensation without scipy, which takes memory and time on small computers."""
    program = "import sys, dynid_ros.control.gravity_compensator, dynid_ros.control.gravity_feedforward; " \
              "print([name for name in sys.modules if name.startswith('scipy')])"  # fmt: skip
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert process.stdout.strip() == "[]"


def test_caches_are_bounded():
    """Require a largest size of caches, because nodes run for months."""
    unbounded = re.compile(r"^\s*@(functools\.)?(lru_cache(\(\s*(maxsize=)?None\s*\)|\(\))?|cache)\s*$", re.MULTILINE)
    assert not [path.name for path in SOURCES if unbounded.search(path.read_text(encoding="utf-8"))]


def test_package_index_shows_readme_and_links():
    arguments = setup_arguments("bdist_wheel")
    assert arguments["long_description"].startswith("# dynid_ros")
    assert arguments["long_description_content_type"] == "text/markdown"
    assert "](docs/" not in arguments["long_description"]
    urls = {arguments["url"], *arguments["project_urls"].values()}
    assert urls == {url.text for url in package_xml().findall("url")}


def test_messages_do_not_name_extras():
    """Avoid names of extras in messages, because the package is on no index."""
    assert offenders(lambda path: re.findall(r"pip install '?dynid_ros\S*", path.read_text(encoding="utf-8"))) == {}


def test_workflow_has_minimal_rights_and_pinned_actions():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name) for name in used)


def test_model_modules_have_no_circular_imports():
    graph = {}
    for path in (PACKAGE / "model").glob("*.py"):
        nodes = ast.walk(syntax(path))
        modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        graph[path.stem] = {name.rpartition(".")[2] for name in modules if name.startswith("dynid_ros.model.")}
    del graph["__init__"]
    assert list(TopologicalSorter(graph).static_order())
