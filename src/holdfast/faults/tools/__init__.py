"""Faults on tool calls."""
