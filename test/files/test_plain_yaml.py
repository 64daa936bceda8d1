import time

import pytest
import yaml

from dynid_ros.files import parse_yaml

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "more than 1000000 entries"),
        ("a: &x [*x]", "an alias of the collection that it is in"),
        ("a: &x {<<: *x}", "an alias of the collection that it is in"),
        ("a: " + "[" * 50_000, "nested more than 100 levels deep"),
        ("mass: 1\nb: 2\nmass: 3", "line 3: key 'mass' comes twice"),
        ("a: !!python/object/apply:os.system [exit]", "line 1: could not determine a constructor for the tag"),
        ("a: !!python/name:os.system x", "could not determine a constructor"),
        ("b: 1\na: 2020-13-45", "line 2: '2020-13-45' is no timestamp"),
        ("a: " + "9" * 5000, "is no int"),
        ("a: !!bool perhaps", "'perhaps' is no bool"),
        ("a: !!timestamp now", "'now' is no timestamp"),
        ("a: !!int ''", "'' is no int"),
        ("a: !!float q", "'q' is no float"),
        ("? [1, 2]\n: 3", "line 1: a key is a list or mapping"),
        ("a: *b", "undefined alias 'b'"),
        ("a: 1\n--- \nb: 2", "but found another document"),
        ("\0", "special characters are not allowed"),
        ("a: [", "line 1: "),
    ],
)
def test_what_is_no_plain_yaml(text, problem):
    start = time.process_time()
    with pytest.raises(ValueError, match=r".") as caught:
        parse_yaml(text)
    assert problem in str(caught.value)
    assert str(caught.value).isprintable()
    assert time.process_time() - start < 5


def test_what_is_plain():
    content = {"a": [1, 2.5, None, True, "x: y"], "Δ": {"b": [[]]}, "n": float("inf")}
    assert parse_yaml(yaml.safe_dump(content)) == content
    assert parse_yaml("a: &a [1, 2]\nb: *a\nc: &c {d: 1}\ne: {<<: *c, d: 2}") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": {"d": 1},
        "e": {"d": 2},
    }
    assert parse_yaml("") is None
