"""Errors about files that the user gave."""


class ModelError(ValueError):
    """A model, card or label file that cannot be used: what is wrong, and what to do."""


class SourceError(ValueError):
    """A picture, video or bag that cannot be read: what is wrong, and what to do."""
