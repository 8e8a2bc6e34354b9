"""From one kernel of the graph to linear uops: a list of named passes."""
