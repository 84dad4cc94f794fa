"""The nodes' tree: paths, links, what is the host's."""

import os
from pathlib import Path

import pytest

from vc4lab.drm.nodes.platform_gpu import platform_gpu
from vc4lab.drm.nodes.tree import HostPath, Node, Tree


@pytest.fixture
def tree() -> Tree:
    return platform_gpu()


def node(tree: Tree, path: str, *, follow: bool = True) -> Node:
    found = tree.resolve(path, follow=follow)
    assert isinstance(found, Node), path
    return found


def test_nodes_and_links_lead_where_sysfs_leads(tree: Tree) -> None:
    gpu = "/sys/devices/platform/soc/soc:gpu"
    assert node(tree, "/dev/dri/card0").device == "card0"
    assert node(tree, "/dev/dri/renderD128").number == (226, 128)
    assert node(tree, "/sys/dev/char/226:128").path == f"{gpu}/drm/renderD128"
    assert node(tree, "/sys/dev/char/226:0/device").path == gpu
    assert node(tree, "/sys/class/drm/card0/device/uevent").text is not None
    link = node(tree, "/sys/dev/char/226:0/device/subsystem", follow=False)
    assert link.link is not None
    assert link.link.endswith("bus/platform")
    assert node(tree, "/sys/class/drm/card0/../../drm//./renderD128/dev").text == "226:128\n"


def test_what_is_not_in_the_tree_is_the_hosts_or_not_there(tree: Tree) -> None:
    assert tree.resolve("/sys/class/net/lo") == HostPath("/sys/class/net/lo")
    assert tree.resolve("/dev/null") == HostPath("/dev/null")
    assert tree.resolve("/dev/dri/card1") is None
    assert tree.resolve("/sys/class/drm/card7") is None
    assert tree.resolve("/sys/class/drm/card0/dev/x") is None
    assert tree.resolve("/sys/class/drm/../../../../etc/passwd") == HostPath("/etc/passwd")


def test_links_that_go_in_circles_end(tree: Tree) -> None:
    tree.link("/dev/dri/a", "/dev/dri/b")
    tree.link("/dev/dri/b", "/dev/dri/a")
    assert tree.resolve("/dev/dri/a") is None


def test_the_tree_lies_on_disk_and_goes_away_again(tree: Tree) -> None:
    tree.write()
    root = Path(tree.root)
    assert (root / "dev/dri/card0").exists()
    assert (root / "sys/class/drm/card0/device/uevent").read_text().startswith("DRIVER=vc4-drm")
    if Path("/sys/class/net").exists():
        assert "net" in os.listdir(root / "sys/class")
    assert tree.virtual(f"{root}/sys/class") == "/sys/class"
    assert tree.virtual(f"{root}x/sys") == f"{root}x/sys"
    tree.remove()
    assert not root.exists()
