"""Golden cases and real streams with known answers, through the real command and the live path."""
