"""piglit, if its package is installed: the host's Python runs the list, qemu the tests.

Its framework starts tests by their path below a folder `bin`; here that is the folder of names.
"""

from __future__ import annotations

import shlex

from vc4lab.drm.setup.places import MULTIARCH, Brought

_PARTS = ("framework", "generated_tests", "templates", "tests")


def add_piglit(brought: Brought) -> None:
    """Let `piglit` be called by its name. Raises OSError."""
    installed = brought.tree / MULTIARCH / "piglit"
    script = brought.tree / "usr/bin/piglit"
    if not script.is_file():
        return
    folder = brought.folder / "piglit"
    folder.mkdir(exist_ok=True)
    targets = {name: installed / name for name in _PARTS} | {"bin": brought.names_folder}
    for name, target in targets.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    place = shlex.quote(str(folder))
    modules = shlex.quote(str(brought.tree / "usr/lib/python3/dist-packages"))  # mako, six
    command = brought.names_folder / "piglit"
    command.unlink(missing_ok=True)
    command.write_text(
        f"#!/bin/sh\nPYTHONPATH={modules} PIGLIT_SOURCE_DIR={place} PIGLIT_BUILD_DIR={place} "
        f'exec python3 {shlex.quote(str(script))} "$@"\n'
    )
    command.chmod(0o755)
