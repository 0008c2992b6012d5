"""Byte streams: a connection, its two directions, and two connections joined. Used by HTTP and the TCP plane."""
