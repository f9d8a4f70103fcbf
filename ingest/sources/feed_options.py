"""What the options of every made-up or recorded feed have in common. Pure.

A command makes its own options of them (``cli/commands/setting_options.py``).
"""

from typing import Annotated

from pydantic import BaseModel, Field, InstanceOf

from ingest.files.file_form import FROZEN, read_by
from ingest.sources.rate_profile import Profile


class FeedOptions(BaseModel):
    """Options that do not change; ``ValidationError`` names each one out of bounds."""

    model_config = FROZEN


Share = Annotated[float, Field(ge=0, le=1)]
ProfileOption = Annotated[InstanceOf[Profile], read_by(Profile.parse)]
"""A profile, or the text of one."""
