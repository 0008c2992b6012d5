"""Failures grouped by cause, and their descriptions."""
