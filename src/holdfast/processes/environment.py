"""What every agent may read about the trial it is in, in its environment."""

from __future__ import annotations

from holdfast.model.codec import encode
from holdfast.model.trial import Trial

TRIAL = "HOLDFAST_TRIAL"


def variables(trial: Trial) -> dict[str, str]:
    """What an agent's environment says of the trial."""
    wanted = {TRIAL: trial.id, "HOLDFAST_REPLICA": str(trial.replica), "HOLDFAST_SEED": str(trial.seed)}
    for name, value in trial.params.items():
        wanted[f"PARAM_{name.upper()}"] = value if isinstance(value, str) else encode(value).decode()
    return wanted
