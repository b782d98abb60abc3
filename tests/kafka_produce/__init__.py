"""`calmon produce` and the broker's part of `calmon check`, against a real broker."""
