"""The HTTP plane: a forward proxy for everything that is not a model's API."""
