"""The wire formats of model providers, one file each, and the neutral form between them."""
