"""The window's files: what is written once into the work folder, and read by lanes. fsspec and Parquet, no servers."""
