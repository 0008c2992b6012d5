"""Network faults, with Toxiproxy's names. They change how a reply is delivered, never its content."""
