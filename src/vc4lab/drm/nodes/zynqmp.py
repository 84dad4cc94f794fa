"""The nodes of a ZynqMP: its display is card0; the GPU, here the V3D, has nodes of its own."""

from __future__ import annotations

from vc4lab.drm.nodes.platform_gpu import add_device, add_gpu, begin_tree
from vc4lab.drm.nodes.tree import Tree

AMBA = "/sys/devices/platform/amba"
DISPLAY = f"{AMBA}/fd4a0000.display/xlnx-drm.0"


def zynqmp() -> Tree:
    """The display's tree and the GPU's."""
    tree = Tree()
    begin_tree(tree)
    add_device(
        tree, DISPLAY, "xlnx-drm", "DRIVER=xlnx-drm\n", "platform:xlnx-drm", ("card0",), "HDMI-A-1"
    )
    add_gpu(tree, f"{AMBA}/amba:gpu", "/amba/gpu", ("card1", "renderD128"))
    tree.directory("/sys/module", over_host=True)
    return tree
