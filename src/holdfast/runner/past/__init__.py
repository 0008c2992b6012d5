"""An earlier run: looked at, judged again, compared, reused."""
