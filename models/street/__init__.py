"""How the street detector came about: teacher, labels, scenes, objective, export. models/train_street.py runs it."""
