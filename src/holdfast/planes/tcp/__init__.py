"""The TCP plane: what an agent says to its services, byte by byte, and to databases message by message."""
