"""What Python code calls: load or build a spec, run it, judge it; and what the command line does by the same way."""
