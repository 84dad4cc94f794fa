"""The nodes of a ZynqMP: its display is card0; the GPU beside it, here the V3D, has its own."""

from __future__ import annotations

from vc4lab.drm.nodes.platform_gpu import add_device, begin_tree
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
    compatible = "brcm,bcm2835-vc4"
    uevent = (
        "DRIVER=vc4-drm\nOF_NAME=gpu\nOF_FULLNAME=/amba/gpu\n"
        f"OF_COMPATIBLE_0={compatible}\nOF_COMPATIBLE_N=1\n"
    )
    nodes = ("card1", "renderD128")
    add_device(tree, f"{AMBA}/amba:gpu", "vc4-drm", uevent, f"of:NgpuT(null)C{compatible}", nodes)
    tree.directory("/sys/module", over_host=True)
    return tree
