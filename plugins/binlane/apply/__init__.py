"""Lanes: blocks go to the target, each with its position in one transaction."""
