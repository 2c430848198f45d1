"""Settings of a training. With the scenario they determine the weights, to the byte."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from artist.io.documents import Document, Positive
from artist.policies.learned.network import NetworkName, StartName
from artist.policies.learned.task_options import TaskOptions
from artist.rl.environment import DEFAULT_REWARD

Share = Annotated[float, Field(ge=0, le=1)]
Width = Annotated[int, Field(ge=1, le=4096)]


class Hyperparameters(Document):
    """Hyperparameters of PPO: stable-baselines3's defaults unless a comment says otherwise.

    Schulman et al., *Proximal policy optimization algorithms*, 2017, defines the symbols.
    """

    learning_rate: Positive = 3e-4
    # 8 environments x 256 steps are the 2,048 of stable-baselines3.
    environments: int = Field(default=8, ge=1, le=1024)
    rollout: int = Field(default=256, ge=2, description="steps of each environment per update")
    batch: int = Field(default=256, ge=2)
    epochs: int = Field(default=10, ge=1)
    # Decisions matter for hundreds of steps; stable-baselines3's .99 forgets after one hundred.
    gamma: Share = Field(default=0.995, description="discount per step")
    gae_lambda: Share = 0.95
    clip_range: Positive = 0.2
    entropy: float = Field(default=0.0, ge=0, description="weight of the entropy in the loss")
    value: float = Field(default=0.5, ge=0, description="weight of the critic's loss")
    start: StartName = Field(
        default="nothing",
        description="network shared: the rule that it starts from. first: the first candidate is "
        "next; first-together: the first is that would not be scattered over machines",
    )
    # Two layers of 64, as in the paper's code.
    layers: tuple[Width, ...] = Field(default=(64, 64), min_length=1, max_length=8)


class TrainingSettings(Document):
    """What `artist train` was asked for."""

    algorithm: Literal["maskable-ppo"] = "maskable-ppo"
    steps: int = Field(ge=1, description="environment steps; whole updates are done")
    seed: int = Field(default=0, ge=0, lt=2**31, description="of weights, actions and episodes")
    task: TaskOptions = TaskOptions()
    reward: str = DEFAULT_REWARD
    network: NetworkName = "mlp"
    hyperparameters: Hyperparameters = Hyperparameters()

    @model_validator(mode="after")
    def _shared_needs_candidates(self) -> Self:
        """Refuse a shared network, or a start, for which the task has no separate candidates."""
        task = self.task
        if self.network == "shared" and (task.task, task.observation) != (
            "schedule",
            "sensitivity",
        ):
            raise ValueError(
                "network shared needs task schedule and observation sensitivity, got "
                f"{task.task} and {task.observation}; use network mlp"
            )
        if self.network != "shared" and self.hyperparameters.start != "nothing":
            raise ValueError(
                f"start {self.hyperparameters.start} needs network shared, got {self.network}; "
                "leave it out"
            )
        return self
