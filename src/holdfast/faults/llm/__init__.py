"""Faults on what a model answers."""
