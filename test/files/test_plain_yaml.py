"""Test the YAML reader, which is limited to plain values of bounded size."""

import datetime
import time
import tracemalloc

import pytest
import yaml

from dynid_ros.files import parse_yaml, plain_yaml

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def fixture_parser(request, monkeypatch):
    loader = yaml.SafeLoader if request.param == "python" else pytest.importorskip("yaml").CSafeLoader
    monkeypatch.setattr(plain_yaml, "LOADER", loader)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "more than 1000000 entries"),
        ("a: &x [*x]", "an alias of the collection that it is in"),
        ("a: &x {<<: *x}", "an alias of the collection that it is in"),
        ("a: " + "[" * 20_000, "nest"),
        ("mass: 1\nb: 2\nmass: 3", "line 3: key 'mass' comes twice"),
        ("a: !!python/object/apply:os.system [exit]", "line 1: could not determine a constructor for the tag"),
        ("a: !!python/name:os.system x", "could not determine a constructor"),
        ("b: 1\na: 2020-13-45", "line 2: '2020-13-45' is no timestamp"),
        ("a: " + "9" * 5000, "is no int"),
        ("a: !!bool perhaps", "'perhaps' is no bool"),
        ("a: !!timestamp now", "'now' is no timestamp"),
        ("a: !!int ''", "'' is no int"),
        ("a: !!float q", "'q' is no float"),
        ("? [1, 2]\n: 3", "line 1: a key is a list"),
        ("a: *b", "undefined alias 'b'"),
        ("a: 1\n--- \nb: 2", "but found another document"),
        ("\0", "characters are not allowed"),
        ("a: [", "line "),
        ("a: !!set {b}", "could not determine a constructor for the tag"),
        ("a: !!binary YQ==", "could not determine a constructor for the tag"),
        ("a: !!seq b", "could not determine a constructor for the tag"),
        ("1: a\n1.0: b", "line 2: key '1.0' comes twice"),
        ("a: {<<: 1}", "line 1: expected a mapping"),
        ("a: =", "could not determine a constructor"),
    ],
)
def test_refuses_yaml_that_is_not_plain(text, problem):
    start = time.process_time()
    with pytest.raises(ValueError, match=r".") as caught:
        parse_yaml(text)
    assert problem in str(caught.value)
    assert str(caught.value).isprintable()
    assert time.process_time() - start < 5


def test_reads_plain_yaml():
    content = {"a": [1, 2.5, None, True, "x: y"], "Δ": {"b": [[]]}, "n": float("inf")}
    assert parse_yaml(yaml.safe_dump(content)) == content
    assert parse_yaml("a: &a [1, 2]\nb: *a\nc: &c {d: 1}\ne: {<<: *c, d: 2}") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": {"d": 1},
        "e": {"d": 2},
    }
    merged = parse_yaml("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}")["c"]
    assert merged == {"x": 1, "y": 3, "z": 2}
    assert parse_yaml("a: &a 1\nb: *a\n? c\n: 'yes'\n'<<': 2") == {"a": 1, "b": 1, "c": "yes", "<<": 2}
    assert parse_yaml("!!map {a: !!seq [!!str 1, !!float 2]}") == {"a": ["1", 2.0]}
    assert parse_yaml("a: 2026-01-05\nb: 0o7\nc: 1e-3\nd: .nan")["a"] == datetime.date(2026, 1, 5)
    assert parse_yaml("") is None
    assert parse_yaml("# nothing\n---\n") is None


@pytest.mark.parametrize("text", ["- 1.5\n", "- {}\n", "- {value: 0.1, std: null}\n", "- [[], a]\n", "- 'x'\n"])
def test_memory_stays_below_thirty_times_the_text(text, request):
    """A tree of nodes took up to 270 times the size of the text."""
    text *= 5_000 // len(text)
    tracemalloc.start()
    parse_yaml(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 * len(text)
