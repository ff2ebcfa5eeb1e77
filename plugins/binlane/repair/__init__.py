"""Corrects drifted rows of the target by a plan that an operator has reviewed."""
