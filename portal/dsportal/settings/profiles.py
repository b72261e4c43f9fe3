"""Settings of profiles: named sizes, each of which fills in the form."""

from typing import Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.table import Table, setting
from dsportal.values import Name, Text
from jupyterhub_gpu_slurm.options import profile


class ProfileSettings(Table):
    """A named size, which fills in the form; a missing key leaves its field as usual."""

    title: Name = setting(..., "Its name in the form.")
    description: Text = setting("", "What it is for, in one sentence.")
    gpus: int | None = setting(None, "The number of GPUs.", unit="GPUs", ge=0)
    gpu_type: Name | None = setting(None, "The type of GPU, as Slurm names it.")
    hours: float | None = setting(None, "The session time.", unit="hours", gt=0, le=8760)
    partition: Name | None = setting(None, "The partition.")
    image: Name | None = setting(None, "The image in which the session runs.")
    account: Name | None = setting(None, "The account, one that the user can choose.")
    qos: Name | None = setting(None, "The QOS, one that the user can choose.")
    reservation: Name | None = setting(None, "The reservation, one of those in `limits`.")
    constraint: Name | None = setting(None, "The node feature, one of those in `limits`.")

    @model_validator(mode="after")
    def _can_be_asked_for(self) -> Self:
        try:
            profile.read(self.model_dump(exclude_none=True))
        except ValueError as error:
            raise PydanticCustomError("rule", "{words}", {"words": str(error)}) from error
        return self
