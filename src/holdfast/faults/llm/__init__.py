"""Faults on a model's answers."""
