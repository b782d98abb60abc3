"""The folder beside a state: what is said where it cannot be written fits what is wrong with it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.sieve import Held
from monitor.errors import StateError
from monitor.events.record import Refusal

HELD = [Held(1, b"{}", Refusal("bad_json"))]


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "state"))
    folder.path.write_bytes(b"")
    for work in (lambda: folder.append("l", HELD), lambda: folder.save("l", Standing()), lambda: folder.load("l")):
        with pytest.raises(StateError) as caught:
            work()
        assert str(caught.value) == f"{folder.path} is no directory: move it away, and run this again"


@pytest.mark.parametrize(("number", "advised"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False), (errno.EROFS, False)])
def test_room_is_asked_for_only_where_there_is_none(tmp_path: Path, number: int, advised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    folder = Folder(str(tmp_path / "state"))
    for work in (lambda: folder.append("l", HELD), lambda: folder.save("l", Standing())):
        with pytest.raises(StateError, match=f"cannot write .*: {os.strerror(number)}") as caught:
            work()
        assert ("make room, and run this again" in str(caught.value)) == advised
