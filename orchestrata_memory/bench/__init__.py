"""The project's own benches: every figure is measured through the public interface."""
