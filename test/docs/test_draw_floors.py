"""The page of the architecture agrees with the code."""

from docs.draw_floors import PAGE, layers, page, purpose


def test_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_room_says_what_it_is_for():
    assert [room for rooms in layers() for room in rooms if not purpose(room)] == []
