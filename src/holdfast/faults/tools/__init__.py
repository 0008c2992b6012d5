"""Faults on the calls of tools."""
