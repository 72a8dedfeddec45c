"""Keep golden metric files of large training codebases true."""

__version__ = "0.1.0"
