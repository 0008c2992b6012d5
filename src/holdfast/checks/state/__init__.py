"""Checks of the state an agent left: gathered while the world is alive, decided on what was recorded."""
