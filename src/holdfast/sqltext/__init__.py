"""SQL text, read in one way by planes, audits and specs: tokens, statements, what these write and do."""
