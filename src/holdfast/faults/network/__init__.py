"""Faults of the network, by Toxiproxy's names. They act on how a reply is delivered, never on what it says."""
