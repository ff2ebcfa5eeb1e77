"""The first copy: a consistent snapshot of chosen databases, from the live source to an empty target."""
