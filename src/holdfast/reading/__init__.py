"""Reads the YAML that users write: every value with its place, and every problem with its near miss."""
