"""Describes the spec format: the schema for editors, the reference, and a page for each plug-in."""
