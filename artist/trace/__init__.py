"""Traces: lists of jobs, read from files or generated.

Words used in this package:

- **format**: how a trace file is laid out. artist's **own** formats (`native/formats.py`) state
  everything about a job. A **foreign** format (`foreign/formats.py`) lacks something, for
  example the model or the iterations, and **rules** (`native/choices.py`) fill it in.
- **table**: the cells of a file by column, not yet checked (`native/table.py`).
- **row**: one line of a table. A row may be a job, part of a job, or no job at all.
- **trace**: checked jobs in order of arrival, with the place of each in its file
  (`native/trace.py`).

A file becomes a trace in three steps: table (`native/read_table.py`), format (`detect.py`), jobs
(`native/assemble.py` and `foreign/assemble.py`). `read.py` does all three, and `native/writer.py`
writes a trace.
"""
