"""Private servers and traffic on this machine, for the demo, the tests and the benchmarks."""
