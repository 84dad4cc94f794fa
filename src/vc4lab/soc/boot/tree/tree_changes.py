"""The lines `dtparam=` and `dtoverlay=` of config.txt, in order, and what they make of a tree.

Parameters before the first overlay are those of the card's tree; after `dtoverlay=name` they are
that overlay's, until an empty `dtoverlay=`. What fails is reported and left out, as the firmware
does.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.files import size_text
from vc4lab.soc.boot.config_txt import Config
from vc4lab.soc.boot.tree.device_tree import BadTree, Tree, read_tree
from vc4lab.soc.boot.tree.overlays import BadOverlay, Overlay, copied
from vc4lab.soc.boot.tree.parameters import UnknownParameter, set_parameter
from vc4lab.soc.media.card import Card

LARGEST_OVERLAY = 1 << 20
MAX_CHANGES = 100
"""Lines of config.txt; further ones are left out."""
SUFFIX = ".dtbo"


class Change(NamedTuple):
    """An overlay with its parameters; without a name those of the card's tree."""

    name: str
    parameters: list[tuple[str, str]]
    where: str


def changes_of(config: Config) -> list[Change]:
    """List the changes that the lines ask for."""
    changes = [Change("", [], "config.txt")]
    for key, value, where in config.tree_lines:
        if key == "dtoverlay":
            name, colon, rest = value.partition(":")
            if not colon:
                name, _, rest = value.partition(",")
            changes.append(Change(name.strip(), _parameters(rest), where))
        else:
            if changes[-1].where != where and not changes[-1].name:
                changes.append(Change("", [], where))
            changes[-1].parameters.extend(_parameters(value))
    return [change for change in changes if change.name or change.parameters]


def _parameters(text: str) -> list[tuple[str, str]]:
    """`a=1,b`: one without a value is switched on."""
    words = [word.strip().partition("=") for word in text.split(",")]
    return [(name.strip(), value.strip() if sign else "on") for name, sign, value in words if name]


def changed(tree: Tree, card: Card, config: Config, reporter: Reporter) -> Tree:
    """The tree with all overlays and parameters of config.txt; what cannot be done is reported."""
    changes = changes_of(config)
    if len(changes) > MAX_CHANGES:
        text = f"{len(changes)} overlays and parameters: only {MAX_CHANGES} are used"
        reporter.report("BOOT-032", text, block="firmware")
    for change in changes[:MAX_CHANGES]:
        if change.name:
            tree = _with_overlay(tree, card, config, change, reporter)
        else:
            _set(tree, change.parameters, "dtparam", change.where, reporter)
    return tree


def _set(
    root: Tree,
    parameters: list[tuple[str, str]],
    what: str,
    where: str,
    reporter: Reporter,
    tree: Tree | None = None,
) -> None:
    for name, value in parameters:
        try:
            set_parameter(root, name, value, tree)
        except UnknownParameter as error:
            reporter.report("BOOT-033", f"{where}: {what}: {error}", block="firmware")
        except BadOverlay as error:
            reporter.report("BOOT-032", f"{where}: {what}: {error}", block="firmware")


def _with_overlay(tree: Tree, card: Card, config: Config, change: Change, reporter: Reporter) -> Tree:
    """The tree with an overlay; the old one if it cannot be had."""
    prefix = config.get("overlay_prefix", "overlays/")
    file = f"{config.get('os_prefix')}{prefix}{change.name}{SUFFIX}"
    shown = "".join(c if c.isprintable() else "?" for c in change.name[:60])
    what = f"dtoverlay {shown}"
    try:
        if card.find(file) is None:
            raise BadOverlay(f"there is no {prefix}{shown}{SUFFIX} on the card")
        if card.size(file) > LARGEST_OVERLAY:
            raise BadOverlay(f"larger than {size_text(LARGEST_OVERLAY)}")
        whole = copied(tree)
        after = Tree(whole.name, whole.properties, whole.children, list(tree.reserved))
        overlay = Overlay(read_tree(card.read(file, LARGEST_OVERLAY)), after)
        _set(overlay.root, change.parameters, what, change.where, reporter, after)
        overlay.merge()
    except (BadOverlay, BadTree) as error:
        reporter.report("BOOT-032", f"{change.where}: {what}: {error}", block="firmware")
        return tree
    return after
