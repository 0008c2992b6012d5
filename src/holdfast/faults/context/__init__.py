"""Attacks by way of what the agent reads."""
