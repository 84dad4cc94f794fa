"""Pictures for people: terminal preview and recordings."""

from vc4lab.viewer.preview import preview
from vc4lab.viewer.recorder import Recorder

__all__ = ["Recorder", "preview"]
