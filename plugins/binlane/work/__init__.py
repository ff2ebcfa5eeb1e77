"""The window's files, written once into the work folder and read by lanes. fsspec and Parquet, no servers."""
