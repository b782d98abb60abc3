"""The independent oracle: raw events and a clock in, every gauge out, no code shared with the product."""
