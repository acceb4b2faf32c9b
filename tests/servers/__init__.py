"""Real servers for the tests: private, on loopback, started once a run, killed on request."""
