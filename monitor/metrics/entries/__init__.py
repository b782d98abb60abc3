"""Entries of the catalogue, a module a family or two."""
