"""Whether the topics are still those that we read, with as many partitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError

from monitor.sources.kafka_layout import Topic
from monitor.sources.protocol import never

_LOOK_S = 0.1
_BEGIN_TIMEOUT_S = 5.0
_ASK_TIMEOUT_S = 1.0
_ASK_EVERY_S = 5.0
"""How soon it is noticed, while no records come, that a topic was made anew or has grown."""


class TopicsAnswer:
    """What a broker says of topics, once it has.

    Args:
        future: Of the response.
    """

    def __init__(self, future: Any) -> None:
        self._future = future
        self._come = threading.Event()
        future.add_both(lambda _: self._come.set())

    @property
    def come(self) -> bool:
        """Whether the answer, or that there is none, is known."""
        return self._come.is_set()

    def wait(self, timeout_s: float, given_up: Callable[[], bool] = never) -> dict[str, Topic] | None:
        """The topics that there are; None if the broker does not answer in time, or nobody waits for it any more.

        Raises:
            AuthorizationError: We may not see a topic.
        """
        deadline = time.monotonic() + timeout_s
        while not self._come.wait(min(_LOOK_S, max(0.0, deadline - time.monotonic()))):
            if given_up() or time.monotonic() >= deadline:
                return None
        if not self._future.succeeded():
            return None
        found = {}
        for topic in self._future.value.topics:
            if topic.error_code == TopicAuthorizationFailedError.errno:
                raise TopicAuthorizationFailedError({topic.name})
            if topic.partitions:
                found[topic.name] = Topic(topic.name, "" if topic.topic_id is None else str(topic.topic_id), len(topic.partitions))
        return found


class TopicWatch:
    """Asks for the topics again and again, and tells what has changed.

    Args:
        ask: Asks a broker for topics by name.
        names: Of the topics.

    Attributes:
        gone: Topics that there were none of at the last answer.
    """

    def __init__(self, ask: Callable[[Sequence[str]], TopicsAnswer], names: Sequence[str]) -> None:
        self._ask = ask
        self._names = names
        self._known: dict[str, Topic] = {}
        self._answer: TopicsAnswer | None = None
        self._answered_at = time.monotonic()
        self.gone: frozenset[str] = frozenset()

    def begin(self, given_up: Callable[[], bool]) -> Mapping[str, Topic]:
        """The topics as they are at the start.

        Raises:
            KafkaError: The broker did not answer.
        """
        topics = self._ask(self._names).wait(_BEGIN_TIMEOUT_S, given_up)
        if topics is None:
            raise KafkaTimeoutError("the broker does not say which topics it has")
        self._known = topics
        return dict(topics)

    def changes(self, fetched: bool) -> list[tuple[Topic, Topic]] | None:
        """What was known and what is so now of each topic that has changed; None if what was fetched cannot be trusted.

        kafka-python fetches by name, so what was fetched may be of a topic made anew; that the topic is still the same
        afterwards proves that it was. Without records the answer of some seconds ago will do, and nobody waits for it.

        Args:
            fetched: Whether there are records.

        Raises:
            KafkaError: As when there is no answer.
        """
        if fetched or (self._answer is None and time.monotonic() - self._answered_at > _ASK_EVERY_S):
            self._answer = self._ask(self._names)
        if self._answer is None or not (fetched or self._answer.come):
            return []
        answer, self._answer = self._answer, None
        try:
            topics = answer.wait(_ASK_TIMEOUT_S)
        finally:
            self._answered_at = time.monotonic()
        if topics is None:
            return None
        self.gone = frozenset(self._known.keys() - topics.keys())
        changed = [(known, topics[name]) for name, known in self._known.items() if topics.get(name, known) != known]
        self._known |= topics
        return changed
