"""The Python API: load or build a spec, run it, judge it. The command line uses the same code."""
