"""One file for each kind of service. What it takes to run one is imported when it is opened."""
