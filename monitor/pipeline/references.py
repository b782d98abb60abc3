"""The references that models are compared with: read when they appear, refused with a reason that is told once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from monitor.errors import StateError
from monitor.metrics.comparable import REASONS, comparable, differences
from monitor.metrics.settings import SettingsOf
from monitor.metrics.version import Version
from monitor.state.references import References
from monitor.statistics.layout import Layout
from monitor.statistics.reference import Reference

MISSING = "missing"
UNREADABLE = "unreadable"
OTHER_MODEL = "other_model"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """How a model stands with its reference.

    Attributes:
        model: The model.
        name: As configured.
        reference: What was read; None without any.
        refused: Reasons for which all or a part of it is not used.
    """

    model: str
    name: str
    reference: Reference | None
    refused: tuple[str, ...]


class ConfiguredReferences:
    """Looks at each tick whether a reference has appeared; what was read once is not read again.

    Args:
        store: Where references lie.
        names: Configured name by model.
        settings_of: Settings by model.
    """

    def __init__(self, store: References, names: Mapping[str, str], settings_of: SettingsOf) -> None:
        self._store = store
        self._names = names
        self._settings_of = settings_of
        self._read: dict[str, tuple[tuple[str, int], Reference | None]] = {}
        self._compared: dict[str, tuple[Reference, str, Version]] = {}
        self._told: set[tuple[str, str, str]] = set()

    def look(self, layouts: Mapping[str, Layout]) -> tuple[dict[str, Version], list[ReferenceState]]:
        """What each model is compared with now, and how each configured reference stands.

        Args:
            layouts: Present layout of each model that there is.
        """
        found, states = {}, []
        for model, name in self._names.items():
            reference, refused = self._find(model, name)
            if reference is not None and model in layouts:
                for reason in differences(reference.layout, layouts[model]):
                    refused.append(reason)
                    self._tell(model, reference.label, reason, f"{REASONS[reason]}; calmon reference set makes it anew")
                found[model] = self._version(model, reference, layouts[model])
            states.append(ReferenceState(model, name, reference, tuple(refused)))
        return found, states

    def _find(self, model: str, name: str) -> tuple[Reference | None, list[str]]:
        try:
            wanted = self._store.resolve(name)
        except StateError as error:
            self._tell(model, name, UNREADABLE, str(error))
            return None, [UNREADABLE]
        if wanted is None:
            self._tell(model, name, MISSING, "it is not set; calmon reference set makes it, and it is used from the next tick on")
            return None, [MISSING]
        if model not in self._read or self._read[model][0] != wanted:
            self._read[model] = (wanted, self._load(model, *wanted))
        reference = self._read[model][1]
        if reference is None:
            return None, [UNREADABLE]
        if reference.model != model:
            self._tell(model, reference.label, OTHER_MODEL, f"it is of model {reference.model}")
            return None, [OTHER_MODEL]
        return reference, []

    def _load(self, model: str, name: str, number: int) -> Reference | None:
        try:
            reference = self._store.load(name, number)
        except StateError as error:
            self._tell(model, f"{name}@{number}", UNREADABLE, str(error))
            return None
        log.info("model %s is compared with reference %s", model, reference.label)
        return reference

    def _version(self, model: str, reference: Reference, layout: Layout) -> Version:
        known = self._compared.get(model)
        if known is None or known[0] is not reference or known[1] != layout.fingerprint:
            known = self._compared[model] = (reference, layout.fingerprint, comparable(reference, layout, self._settings_of(model)))
        return known[2]

    def _tell(self, model: str, name: str, reason: str, text: str) -> None:
        if (model, name, reason) not in self._told:
            self._told.add((model, name, reason))
            log.warning("model %s, reference %s: %s", model, name, text)
