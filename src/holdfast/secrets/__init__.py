"""Secrets: where their values come from, how they may be written, and how they are masked."""
