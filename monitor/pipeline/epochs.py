"""Epochs: from when on a model's predictions count in which layout, and the layouts themselves.

A configuration change that touches what sums mean begins a new epoch; older event times keep the old layout, so that a
late label finds its prediction's sums where they were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from monitor.errors import StateError
from monitor.statistics.layout import Layout
from monitor.statistics.track import Epoch

LayoutOf = Callable[[str], tuple[Layout, int | None]]
"""Configured layout of a model, and the configured start of its epoch (ms) or None."""


class EpochBook:
    """Layouts and epochs of a shard.

    Args:
        layout_of: The configured layouts, or None to look at what is stored without taking anything in.

    Attributes:
        layouts: By fingerprint.
        epochs: Of each model, ascending and at least one.
        changed: Whether there is anything that is not stored yet.
    """

    def __init__(self, layout_of: LayoutOf | None) -> None:
        self._layout_of = layout_of
        self.layouts: dict[str, Layout] = {}
        self.epochs: dict[str, list[Epoch]] = {}
        self.changed = False

    def of(self, model: str) -> list[Epoch]:
        """Epochs of a model, ascending; a model not seen before gets its first one."""
        if model not in self.epochs and self._layout_of is not None:
            self._begin(model, 0, self._layout_of(model)[0])
        return self.epochs[model]

    def reconcile(self, stored_until_ms: int) -> None:
        """Begin a new epoch for every known model whose configured layout is another than its last epoch's.

        Args:
            stored_until_ms: End of the newest pane that holds anything; 0 without one.

        Raises:
            StateError: A configured start lies before it: what is counted there already would not be found again.
        """
        if self._layout_of is None:
            return
        for model, epochs in self.epochs.items():
            layout, start_ms = self._layout_of(model)
            if layout.fingerprint == epochs[-1].layout:
                continue
            if start_ms is not None and start_ms < stored_until_ms:
                raise StateError(
                    f"model {model}: epoch_start lies before the end of the stored panes ({stored_until_ms} ms): "
                    "name that or a later hour, or leave epoch_start out"
                )
            self._begin(model, max(stored_until_ms if start_ms is None else start_ms, epochs[-1].start_ms), layout)

    def to_bytes(self) -> bytes:
        """The stored form."""
        epochs = {model: [[epoch.start_ms, epoch.layout] for epoch in epochs] for model, epochs in self.epochs.items()}
        return msgspec.json.encode({"layouts": [layout.to_json() for layout in self.layouts.values()], "epochs": epochs})

    def load(self, data: bytes) -> None:
        """Take over what `to_bytes` wrote; only into an empty book.

        Raises:
            StateError: Its sums mean something else than they do in this version.
        """
        fields: dict[str, Any] = msgspec.json.decode(data)
        for one in fields["layouts"]:
            layout = Layout.from_json(one)
            self.layouts[layout.fingerprint] = layout
        for model, epochs in fields["epochs"].items():
            self.epochs[model] = [Epoch(start, fingerprint) for start, fingerprint in epochs]
            if any(fingerprint not in self.layouts for _, fingerprint in epochs):
                raise StateError(
                    "the state was written by a calmon with other sums: use that version, or move the state away and read anew"
                )

    def _begin(self, model: str, start_ms: int, layout: Layout) -> None:
        self.layouts.setdefault(layout.fingerprint, layout)
        self.epochs.setdefault(model, []).append(Epoch(start_ms, layout.fingerprint))
        self.changed = True
