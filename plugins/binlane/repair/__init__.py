"""Drifted rows of the target set right, after a plan that a person has seen."""
