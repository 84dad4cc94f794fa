"""The nodes of a Pi's GPU: what libdrm, libudev, gbm and display servers look at."""

from __future__ import annotations

from vc4lab.drm.nodes.tree import Tree

MAJOR = 226
MINORS = {"card0": 0, "renderD128": 128}
CONNECTOR = "card0-HDMI-A-1"


def platform_gpu(
    *,
    driver: str = "vc4-drm",
    name: str = "soc:gpu",
    full_name: str = "/soc/gpu",
    compatible: str = "brcm,bcm2835-vc4",
) -> Tree:
    """The tree of a platform device with a card and a render node."""
    tree = Tree()
    bus, parent = "/sys/bus/platform", "/sys/devices/platform/soc"
    gpu = f"{parent}/{name}"
    for path in ("/sys/class", "/sys/bus", bus, f"{bus}/drivers", f"{bus}/devices"):
        tree.directory(path, over_host=True)
    tree.directory("/sys/dev/char", over_host=True)
    tree.directory("/sys/class/drm")
    tree.directory("/dev/dri")
    tree.directory(gpu)
    tree.file(
        f"{gpu}/uevent",
        f"DRIVER={driver}\nOF_NAME=gpu\nOF_FULLNAME={full_name}\n"
        f"OF_COMPATIBLE_0={compatible}\nOF_COMPATIBLE_N=1\n"
        f"MODALIAS=of:NgpuT(null)C{compatible}\n",
    )
    tree.file(f"{gpu}/modalias", f"of:NgpuT(null)C{compatible}\n")
    tree.link(f"{gpu}/subsystem", bus)
    tree.link(f"{gpu}/driver", f"{bus}/drivers/{driver}")
    tree.directory(f"{bus}/drivers/{driver}")
    tree.link(f"{bus}/drivers/{driver}/{name}", gpu)
    tree.link(f"{bus}/devices/{name}", gpu)
    tree.directory(f"{gpu}/drm")
    for node, minor in MINORS.items():
        place = f"{gpu}/drm/{node}"
        tree.directory(place)
        tree.link(f"{place}/device", gpu)
        tree.link(f"{place}/subsystem", "/sys/class/drm")
        tree.file(f"{place}/dev", f"{MAJOR}:{minor}\n")
        tree.file(
            f"{place}/uevent",
            f"MAJOR={MAJOR}\nMINOR={minor}\nDEVNAME=dri/{node}\nDEVTYPE=drm_minor\n",
        )
        tree.link(f"/sys/class/drm/{node}", place)
        tree.link(f"/sys/dev/char/{MAJOR}:{minor}", place)
        tree.device(f"/dev/dri/{node}", node, (MAJOR, minor))
    connector = f"{gpu}/drm/card0/{CONNECTOR}"
    tree.directory(connector)
    tree.file(f"{connector}/status", "connected\n")
    tree.file(f"{connector}/enabled", "enabled\n")
    tree.file(f"{connector}/uevent", "DEVTYPE=drm_connector\n")
    tree.link(f"{connector}/device", f"{gpu}/drm/card0")
    tree.link(f"{connector}/subsystem", "/sys/class/drm")
    tree.link(f"/sys/class/drm/{CONNECTOR}", connector)
    return tree
