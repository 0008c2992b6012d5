"""What two texts state, compared piece by piece: words, numbers, dates, names, and what turns their meaning."""
