"""Makes the kits in this folder importable for every test below it."""
