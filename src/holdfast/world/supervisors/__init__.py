"""The connection to a supervisor process, and the programs it runs."""
