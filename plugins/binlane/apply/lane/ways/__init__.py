"""The ways to apply a block, each in a class of its own; ``table`` says which one a block takes. Knows no lane."""
