"""Test validation and quoting of names in files."""

import csv

import pytest
import yaml
from hostile_names import HOSTILE_NAMES

from dynid_ros.errors import ModelError
from dynid_ros.files import comment_text, csv_line, require_name, yaml_text


@pytest.mark.parametrize("character", "\0\n\r\t\x0b\x1b\x7f\x85\u200b\u202e\u2028\u2029\ufeff\udcff")
def test_refuses_control_characters(character):
    with pytest.raises(ModelError, match="control character"):
        require_name(f"a{character}b", "arm.urdf: a joint", ModelError)


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "joint 1", ""])
def test_accepts_unusual_printable_names(name):
    assert require_name(name, "arm.urdf: a joint", ModelError) == name


def test_refuses_names_that_are_not_text():
    with pytest.raises(ModelError, match="expected a text"):
        require_name(1, "arm.yaml: a joint", ModelError)


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "line\nbreak", "half \udcff", "*/", '"""'])
def test_names_cannot_end_a_comment(name):
    text = comment_text(name)
    assert not set(text) & set('\\"*?`$#<>\n\u2028')
    text.encode()


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "1.0", "null", "a: b", ""])
def test_yaml_and_csv_text_round_trip(name):
    assert yaml.safe_load(yaml_text(name)) == name
    assert next(csv.reader([csv_line([name, "b,c", 'd"'])])) == [name, "b,c", 'd"']
