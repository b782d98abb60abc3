"""The in-memory double against the contract of every state store: what it is used for must not depend on its being a double."""

from __future__ import annotations

import pytest

from tests.doubles.memory_store import MemoryStore

from .store_contract import OpenStore, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemoryStore()
        return lambda: store
