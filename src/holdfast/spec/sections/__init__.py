"""The sections of a spec file: each a frozen type whose fields are the keys."""
