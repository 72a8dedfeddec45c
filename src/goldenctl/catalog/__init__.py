"""The DuckDB catalog; the only package that imports duckdb."""
