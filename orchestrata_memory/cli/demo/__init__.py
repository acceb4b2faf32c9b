"""The product on a small story, on real servers, with the real model and rules."""
