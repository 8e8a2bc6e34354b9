"""Neural networks on Tensors."""
