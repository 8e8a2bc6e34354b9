"""The one error of ONNX import."""


class OnnxError(ValueError):
    """A model that cannot be imported, or inputs that do not fit it: says what, where and what to do."""
