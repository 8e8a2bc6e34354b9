"""The graph: nodes, patterns, rewriting, symbolic rules, and what a legal graph is."""
