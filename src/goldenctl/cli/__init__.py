"""The command line: one small file a command; parse, call one library function, print, exit code."""
