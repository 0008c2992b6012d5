"""Test kits for plug-in authors: what every backend, fault and check of a family must do."""
