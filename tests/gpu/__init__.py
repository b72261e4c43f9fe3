"""What only a real GPU shows: run by hand on a machine with one (docs/reference/benchmarks.md)."""
