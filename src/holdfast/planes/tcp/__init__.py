"""The TCP plane: an agent's traffic to its services, as bytes, and for databases as messages."""
