"""The strategy of a kernel: tiles, vectors, unrolling, as data (`options`), and who chooses it (`heuristics`)."""
