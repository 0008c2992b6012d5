"""Converts tasks of other benchmarks to specs: Harbor and terminal-bench."""
