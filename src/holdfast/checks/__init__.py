"""The checks: one small file each. A check reads one exhibit and says what it found."""
