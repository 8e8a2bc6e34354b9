"""From a lazy graph to a flat list of kernels in the order in which they run."""
