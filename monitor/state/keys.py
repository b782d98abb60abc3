"""Keys of the state store: a letter for what it is, then big-endian numbers so that keys sort as the numbers do."""

from __future__ import annotations

CHECKPOINT = b"!checkpoint"
LAYOUTS = b"!layouts"
QUARANTINE = b"!quarantine"
"""How far the quarantine was when records were last confirmed, in its sink's own words."""

EVIDENCE = b"!evidence"
"""How far the evidence tests have come."""

REVISED = b"!revised"
"""Until which checkpoint of each shard the journal of revisions has taken in what was changed."""

ROW = b"r"


def row(prediction_id: str) -> bytes:
    """Join row of an id."""
    return ROW + prediction_id.encode()


def pane_base(level: str, chunk: int) -> bytes:
    """Sums of a chunk of panes as last written whole."""
    return b"p" + level.encode() + chunk.to_bytes(4, "big") + b"0"


def pane_delta(level: str, chunk: int, sequence: int) -> bytes:
    """What one checkpoint added to a chunk since."""
    return b"p" + level.encode() + chunk.to_bytes(4, "big") + b"1" + sequence.to_bytes(8, "big")


def pane_deltas(level: str, chunk: int) -> tuple[bytes, bytes]:
    """Range of a chunk's deltas."""
    prefix = b"p" + level.encode() + chunk.to_bytes(4, "big")
    return prefix + b"1", prefix + b"2"


def panes(level: str, first_chunk: int, end_chunk: int) -> tuple[bytes, bytes]:
    """Range of everything stored of chunks [first, end)."""
    prefix = b"p" + level.encode()
    return prefix + first_chunk.to_bytes(4, "big"), prefix + end_chunk.to_bytes(4, "big")


def chunk_of(key: bytes) -> int:
    """Chunk number of a pane key."""
    return int.from_bytes(key[2:6], "big")


def delta_of(key: bytes) -> int | None:
    """Checkpoint of a delta's key; None for a base."""
    return int.from_bytes(key[7:], "big") if key[6:7] == b"1" else None


def series(slot: int) -> bytes:
    """Series of a slot."""
    return b"s" + slot.to_bytes(4, "big")


def redirect(slot: int) -> bytes:
    """Slot that took over an evicted one's sums."""
    return b"t" + slot.to_bytes(4, "big")


def due(day: int, sequence: int) -> bytes:
    """Ids whose rows may expire on a day, as listed by one checkpoint."""
    return b"x" + day.to_bytes(4, "big") + sequence.to_bytes(8, "big")


def outbox(sequence: int) -> bytes:
    """A refused record on its way to the quarantine."""
    return b"q" + sequence.to_bytes(8, "big")


def carried(number: int) -> bytes:
    """Evidence sums of a version over panes that are gone."""
    return b"c" + number.to_bytes(4, "big")


def expired(chunk: int) -> bytes:
    """Evidence sums of a chunk of panes that are gone but have not matured yet."""
    return b"e" + chunk.to_bytes(4, "big")


def course(number: int) -> bytes:
    """A version's course through the evidence tests."""
    return b"v" + number.to_bytes(4, "big")


def crossing(number: int) -> bytes:
    """An entry of the journal of crossings."""
    return b"j" + number.to_bytes(8, "big")


def revising(sequence: int) -> bytes:
    """What a checkpoint changed in panes that had matured."""
    return b"n" + sequence.to_bytes(8, "big")


def revision(number: int) -> bytes:
    """An entry of the journal of revisions."""
    return b"w" + number.to_bytes(8, "big")


def prefix_range(letter: bytes) -> tuple[bytes, bytes]:
    """Range of all keys that start with a letter."""
    return letter, bytes([letter[0] + 1])
