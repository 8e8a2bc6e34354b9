"""Runs what the schedule lists: realize, captured functions, compiled programs and their cache."""
