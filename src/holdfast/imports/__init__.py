"""Tasks of other benchmarks as specs: Harbor and terminal-bench."""
