"""What is installed, running and reachable, with the fix for what is not."""
