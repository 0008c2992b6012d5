"""Checks of the state an agent left: recorded while the world exists, decided from the record."""
