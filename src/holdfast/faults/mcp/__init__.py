"""Faults of MCP servers and their connections."""
