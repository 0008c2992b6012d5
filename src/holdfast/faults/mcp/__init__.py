"""Faults of MCP servers and of the way to them."""
