"""Byte streams: a connection, its two directions, and two of them joined. Below HTTP, and below the TCP plane."""
