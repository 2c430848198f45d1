"""Other people's trace formats. Each has one file with its reader and one row in `formats.py`."""
