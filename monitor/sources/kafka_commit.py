"""The offsets committed to Kafka: a mirror of the checkpoints for lag tools, never where we go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import FencedInstanceIdError, KafkaError

_REPEAT_S = 30.0
"""How often offsets are committed again when nothing comes: it keeps them, and shows whether another took our membership."""
_COMPLAIN_S = 60.0
_log = logging.getLogger(__name__)


class MirrorCommit:
    """Commits the newest checkpoint's offsets, one request at a time; failures are only logged.

    Args:
        consumer: To commit with.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._offsets: dict[TopicPartition, int] = {}
        self._changed = False
        self._under_way = False
        self._sent_at = time.monotonic()
        self._complained_at = -_COMPLAIN_S
        self.commits = 0
        self.failures = 0
        self.fenced = False

    def note(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take over the offsets of a checkpoint."""
        self._offsets.update(offsets)
        self._changed = True

    def send(self, owned: frozenset[TopicPartition]) -> None:
        """Commit what is new, if no commit is under way; does not wait."""
        due = self._changed or time.monotonic() - self._sent_at > _REPEAT_S
        offsets = self._request(owned)
        if self._under_way or not due or not offsets:
            return
        self._changed, self._under_way, self._sent_at = False, True, time.monotonic()
        try:
            self._consumer.commit_async(offsets, callback=self._done)
        except KafkaError as error:
            self._done(offsets, error)

    def finish(self, owned: frozenset[TopicPartition]) -> None:
        """Commit what is left, waiting shortly."""
        offsets = self._request(owned)
        if self._changed and offsets:
            try:
                self._consumer.commit(offsets, timeout_ms=1000)
            except KafkaError as error:
                self._done(offsets, error)

    def _request(self, owned: frozenset[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {part: OffsetAndMetadata(offset, "", -1) for part, offset in self._offsets.items() if part in owned}

    def _done(self, _: object, answer: object) -> None:
        self._under_way = False
        if not isinstance(answer, BaseException):
            self.commits += 1
            return
        self.failures += 1
        self._changed = True
        self.fenced = self.fenced or isinstance(answer, FencedInstanceIdError)
        if time.monotonic() - self._complained_at >= _COMPLAIN_S:
            self._complained_at = time.monotonic()
            _log.warning("kafka: committing offsets for lag tools failed (%d times so far): %r", self.failures, answer)
