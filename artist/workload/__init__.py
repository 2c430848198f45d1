"""Jobs and models: what a job is, and what one training iteration of a model computes and sends.

From the name of a model to its iteration:

- `models.py` finds a model by name, with the settings of `settings.py`, in `catalogue.py`.
- `architectures/` lists the operators of each network.
- `parallelism.py` divides the operators among GPUs, with compute times from `gpus.py`. The result
  is a `Workload` (`layers.py`).
- `division/` divides them along axes (`divide.py`), and `stage_programs.py` makes the nodes of
  each pipeline stage, which `graph.py` plays.
- `iteration_graph.py` orders the workload: what waits for what. `astra_text.py` reads and writes
  it in ASTRA-sim's text format.

`job.py` is the definition of a job. It needs none of the others.
"""
