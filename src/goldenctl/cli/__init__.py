"""The command line: one small file a command; parse, call the library, print, exit code."""
