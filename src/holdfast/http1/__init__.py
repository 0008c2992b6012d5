"""HTTP/1.1 at the socket level, client and server: bytes pass as they arrive, and a connection can be broken
anywhere."""
