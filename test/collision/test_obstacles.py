import numpy as np
import pytest

from dynid_ros.collision import Obstacle, read_obstacles
from dynid_ros.errors import CollisionError

TABLE = "{name: table, size: [2.0, 1.0, 0.1], position: [0.5, 0.0, -0.05]}"


def test_boxes_are_read(tmp_path):
    path = tmp_path / "cell.yaml"
    path.write_text(
        f"- {TABLE}\n- {{name: wall, size: [1, 2, 3], position: [0, 4, 0], rpy: [0, 0, 1.5707963267948966]}}"
    )
    table, wall = read_obstacles(path)
    assert (table.name, wall.name) == ("table", "wall")
    np.testing.assert_allclose(table.centre, [0.5, 0, -0.05])
    np.testing.assert_allclose(table.half, [1.0, 0.5, 0.05])
    np.testing.assert_allclose(wall.rotation @ [1, 0, 0], [0, 1, 0], atol=1e-12)
    path.write_text("")
    assert read_obstacles(path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: table", "expected a list of boxes"),
        ("- table", "entry 1: expected a mapping"),
        ("- {name: table, size: [1, 1, 1]}", "entry 1: 'position' is missing"),
        (f"- {TABLE}\n- {TABLE}", "several are named 'table'"),
        ("- {name: a, size: [1, 1, 1], position: [0, 0, 0], radius: 1}", "key 'radius' is not known"),
        ("- {name: a, size: [1, 0, 1], position: [0, 0, 0]}", r"entry 1 \('a'\): size is .* three sides above zero"),
        ("- {name: a, size: [1, 1], position: [0, 0, 0]}", r"entry 1 \('a'\): size: shape \(2,\)"),
        ("- {name: a, size: [1, 1, x], position: [0, 0, 0]}", r"entry 1 \('a'\).*three numbers"),
        ("- {name: a, size: [1, 1, 1], position: [0, .nan, 0]}", "position: entry 1 is not finite"),
        ("- [", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    path = tmp_path / "cell.yaml"
    path.write_text(text)
    with pytest.raises(CollisionError, match=f"cell.yaml.*{message}"):
        read_obstacles(path)
    with pytest.raises(CollisionError, match=r"none.yaml': cannot be read"):
        read_obstacles(tmp_path / "none.yaml")


def test_senseless_boxes_are_refused():
    with pytest.raises(CollisionError, match=r"'a': lower corner .* is not below"):
        Obstacle("a", [0, 0, 0], [1, 1, -1])
    with pytest.raises(CollisionError, match=r"'a': pose is not a \(4, 4\) transform"):
        Obstacle("a", [0, 0, 0], [1, 1, 1], 2 * np.eye(4))
    with pytest.raises(CollisionError, match=r"'a', lower corner \(m\)"):
        Obstacle("a", [0, 0], [1, 1, 1])
