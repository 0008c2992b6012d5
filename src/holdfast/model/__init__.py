"""The nouns of Holdfast: frozen values, and the one codec that writes and reads them."""
