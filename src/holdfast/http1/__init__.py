"""HTTP/1.1 at the socket, both ends: bytes pass as they come, and a connection can be broken anywhere."""
