"""Contract suites: what every adapter of a port must do, written once."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.source_contract")
pytest.register_assert_rewrite(f"{__name__}.store_contract")
