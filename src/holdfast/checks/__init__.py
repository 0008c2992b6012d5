"""The checks: one small file each. A check reads one exhibit and returns a finding."""
