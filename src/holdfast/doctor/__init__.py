"""Holdfast doctor: what can be met on this machine, for this spec, by this agent."""
