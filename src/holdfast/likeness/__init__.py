"""Compares texts: how far two texts say the same. `compare` is the only entry point."""
