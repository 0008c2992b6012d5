"""Reads SQL text for planes, audits and specs: tokens, statements, writes and transactions."""
