"""The operations, grouped by what they touch; each goes through the doorway."""
