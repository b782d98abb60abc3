"""The join: which label scores which prediction, decided within one id; pure."""
