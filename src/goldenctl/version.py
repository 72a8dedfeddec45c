"""The version, apart from the package so that no room needs the whole of it."""

__version__ = "0.1.0"
