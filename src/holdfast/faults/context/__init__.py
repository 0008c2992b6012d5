"""Attacks through the text that the agent reads."""
