"""Secrets: their values, their encodings, and how they are masked."""
