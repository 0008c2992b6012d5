"""Faults: one disturbance, one small file. A fault knows neither where nor when it is applied."""
