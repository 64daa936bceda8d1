"""The golden record: what counts as a difference, and that the program computes what it holds."""

import copy

import numpy as np
import pytest

from benchmarks.golden_record import accepted, differences, elsewhere, main, reduced

RECORD = reduced(
    {
        "array": np.sin(np.arange(60.0)).reshape(20, 3),
        "short": [1.0, 2.0, np.nan],
        "count": 3,
        "flag": True,
        "name": "mcx1",
        "values": {"large": 1.0, "small": 1e-16},
        "names": [f"joint_{j}" for j in range(20)],
    }
)


def changed(**changes):
    found = copy.deepcopy(RECORD)
    for key, value in changes.items():
        found[key] = reduced(value)
    return [difference.path for difference in differences(RECORD, found, "part")]


def test_rounding_is_no_difference():
    array = np.sin(np.arange(60.0)).reshape(20, 3)
    assert changed() == []
    assert (
        changed(array=array * (1 + 1e-12), short=[1.0 + 1e-12, 2.0, np.nan], values={"large": 1.0, "small": 0.0}) == []
    )


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"array": np.sin(np.arange(60.0)).reshape(20, 3) * (1 + 1e-7)}, "part/array/largest"),
        ({"array": np.sin(np.arange(60.0))[::-1].reshape(20, 3)}, "part/array/signed_mean"),
        ({"array": np.sin(np.arange(60.0)).reshape(3, 20)}, "part/array/shape/0"),
        ({"short": [1.0, 2.0, 3.0]}, "part/short/2"),
        ({"short": [1.0, 2.0]}, "part/short"),
        ({"count": 4}, "part/count"),
        ({"count": 3.0}, "part/count"),
        ({"flag": False}, "part/flag"),
        ({"name": "mcy1"}, "part/name"),
        ({"values": {"large": 1.0 + 1e-8, "small": 1e-16}}, "part/values/large"),
        ({"values": {"large": 1.0}}, "part/values/small"),
        ({"new": 1}, "part/new"),
        ({"names": [f"joint_{j}" for j in range(19, -1, -1)]}, "part/names/digest"),
    ],
)
def test_what_is_a_difference(changes, path):
    assert path in changed(**changes)


def test_deliberate_changes_have_a_reason():
    changes = [{"path": "links/*/remarks/*", "reason": "other words"}]
    assert accepted("links/chain, weighted/remarks/0", changes) == "other words"
    assert accepted("links/chain, weighted/noise", changes) is None


@pytest.mark.slow
def test_the_program_computes_what_the_record_holds(monkeypatch, capsys):
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    if other := elsewhere():
        pytest.skip(f"the record is of another machine: {other}")
    monkeypatch.setattr("sys.argv", ["golden_record", "--quick"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr().out
