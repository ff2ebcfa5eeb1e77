"""Corrects drifted rows of the target by a plan that a person has seen."""
