"""What a Python program knows about its data and its network, in files that netmend reads (docs/formats.md)."""
from ._errors import PatchError, RecorderError
from ._patching import patch_state_dict
from ._reference import reference
from ._saving import VERSION as __version__
from ._saving import save_data

save_data.reference = reference

__all__ = ["save_data", "patch_state_dict", "RecorderError", "PatchError"]
