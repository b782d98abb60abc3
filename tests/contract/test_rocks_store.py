"""RocksDB against the contract of every state store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.state.protocol import StateStore
from monitor.state.rocks import RocksStore

from .store_contract import OpenStore, StoreContract, put


class TestRocksStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        opened: list[StateStore] = []

        def open_store() -> StateStore:
            opened.append(RocksStore(tmp_path / "state"))
            return opened[-1]

        yield open_store
        for store in opened:
            store.close()

    def test_another_thread_reads_whole_commits_while_one_writes(self, store: StateStore) -> None:
        put(store, a=b"0", b=b"0")
        ended = threading.Event()
        torn: list[object] = []

        def read() -> None:
            while not ended.is_set():
                values = [value for _, value in store.scan(b"a", b"c")]
                if len(set(values)) != 1:
                    torn.append(values)

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(50):
            put(store, a=b"%d" % number, b=b"%d" % number)
        ended.set()
        reader.join()
        assert torn == []
