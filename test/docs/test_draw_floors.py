"""Test that the architecture page agrees with the code."""

from docs.draw_floors import PAGE, layers, page, purpose


def test_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_each_room_has_a_purpose():
    assert [room for rooms in layers() for room in rooms if not purpose(room)] == []
