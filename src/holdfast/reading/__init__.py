"""Reads the YAML that users write: every value with its position, and every problem with a suggestion."""
