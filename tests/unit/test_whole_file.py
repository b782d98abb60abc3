"""Files that appear whole: nothing of anybody else is touched on the way, whatever ends it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from monitor.errors import CalmonError
from monitor.whole_file import output_file, whole_file


@pytest.mark.parametrize("binary", [True, False])
def test_it_takes_the_place_of_what_was_there_with_the_usual_mode(tmp_path: Path, binary: bool) -> None:
    before = os.umask(0o027)
    try:
        for content in ("a", "b"):
            with whole_file(tmp_path / "file", binary) as file:
                file.write(content.encode() if binary else content)
                assert not (tmp_path / "file").exists() or (tmp_path / "file").read_text() == "a"
    finally:
        os.umask(before)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "b"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_neither_a_planted_link_nor_a_file_of_the_user_is_touched(tmp_path: Path) -> None:
    victim, mine = tmp_path / "victim", tmp_path / "other.part"
    victim.write_text("precious")
    mine.write_text("mine")
    for name in ("out.part", "out.new", "out"):
        (tmp_path / name).symlink_to(victim)
    with whole_file(tmp_path / "out", binary=False) as file:
        file.write("x")
    with pytest.raises(KeyError), whole_file(tmp_path / "other", binary=False):
        raise KeyError
    assert (victim.read_text(), mine.read_text()) == ("precious", "mine")
    assert (tmp_path / "out").read_text() == "x"
    assert not (tmp_path / "out").is_symlink()


def test_two_at_once_are_each_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file", binary=False) as one, whole_file(tmp_path / "file", binary=False) as other:
        one.write("one")
        other.write("other")
    assert (tmp_path / "file").read_text() == "one"


@pytest.mark.parametrize("end", [KeyError, KeyboardInterrupt, SystemExit, OSError])
def test_whatever_ends_it_leaves_what_was_there(tmp_path: Path, end: type[BaseException]) -> None:
    (tmp_path / "file").write_text("before")

    def write() -> None:
        with whole_file(tmp_path / "file", binary=False) as file:
            file.write("after")
            raise end

    with pytest.raises(end):
        write()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "before")]


def test_a_name_that_is_taken_is_kept_where_it_must_be(tmp_path: Path) -> None:
    for content in ("before", "after"):
        try:
            with whole_file(tmp_path / "file", binary=False, over=False) as file:
                file.write(content)
        except FileExistsError:
            assert content == "after"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "before")]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("pipe", "it is no regular file"), (".", "it is no regular file"), ("no/file", "No such file or directory")):
        with pytest.raises(CalmonError, match=f"cannot write .*: {said}.*; nothing of it is left"), output_file(str(tmp_path / name), True):
            raise AssertionError
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]
