"""Commands on an earlier run: view, rejudge, compare, reuse."""
