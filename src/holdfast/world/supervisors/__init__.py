"""Supervisors: the connection to one, the programs it runs, and containers whose first process is one."""
