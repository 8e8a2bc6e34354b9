"""`python -m tensor_engine` is the command `tensor-engine`."""

from tensor_engine.cli import main

main()
