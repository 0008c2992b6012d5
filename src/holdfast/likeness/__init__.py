"""How far two texts say the same; `compare` is the one door."""
