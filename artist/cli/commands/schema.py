"""`artist schema`: the JSON Schema of a YAML file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from artist.cli.output import print_json


class Schema(StrEnum):
    """Files that have a JSON Schema."""

    SCENARIO = "scenario"
    EXPERIMENT = "experiment"
    FABRIC = "fabric"
    CLUSTER = "cluster"
    CALIBRATION = "calibration"
    SPEEDS = "speeds"
    GOODPUT = "goodput"
    COLUMNS = "columns"
    COSTS = "costs"
    WAREHOUSE = "warehouse"


def schema(of: Annotated[Schema, typer.Argument(help="Kind of file.")]) -> None:
    """Print the JSON Schema of a YAML file, for editors."""
    from pydantic import BaseModel

    from artist.cluster.cluster_file import ClusterFile
    from artist.cluster.fabric import Fabric
    from artist.config import Scenario
    from artist.estimates.calibration import Calibration
    from artist.estimates.goodput_table import GoodputTable
    from artist.estimates.speeds import SpeedTable
    from artist.experiments.comparison.costs import PriceFile
    from artist.experiments.experiment import Experiment
    from artist.trace.native.mapping import TraceMapping
    from artist.warehouse.warehouse_schema import Warehouse

    models: dict[Schema, type[BaseModel]] = {
        Schema.SCENARIO: Scenario,
        Schema.EXPERIMENT: Experiment,
        Schema.FABRIC: Fabric,
        Schema.CLUSTER: ClusterFile,
        Schema.CALIBRATION: Calibration,
        Schema.SPEEDS: SpeedTable,
        Schema.GOODPUT: GoodputTable,
        Schema.COLUMNS: TraceMapping,
        Schema.COSTS: PriceFile,
        Schema.WAREHOUSE: Warehouse,
    }
    print_json(models[of].model_json_schema())
