"""How a container is isolated: the flags of `docker run`.

The program in the container is not trusted. It has no network and no privileges, it can write
only to `/tmp` and to the work folder, and its memory and its processes are limited.
"""

from __future__ import annotations

import os
from pathlib import Path

from artist.astra.programs.images import ImageEntry
from artist.astra.programs.leftovers import LABEL
from artist.io.processes import owner

# The work folder inside the container.
MOUNT = "/artist-jobs"

_NOBODY = "65534:65534"


def isolation(entry: ImageEntry, folder: Path) -> tuple[str, ...]:
    """The flags for a container that sees `folder` and nothing else of this machine."""
    # The program is never root, neither in the container nor in the files that it writes.
    user = f"{os.getuid()}:{os.getgid()}" if os.getuid() else _NOBODY
    return (
        # It ends when its input ends, and is then removed (`artist.astra.programs.container`).
        *("--interactive", "--rm"),
        # An image that is missing is an error: pulling it here would take minutes unasked.
        *("--pull", "never"),
        *("--network", "none", "--read-only"),
        *("--tmpfs", "/tmp"),  # noqa: S108  # the container's
        *("--user", user, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--memory", entry.memory, "--pids-limit", str(entry.pids_limit)),
        # Names the process that it serves, for `remove_leftovers`.
        *("--label", f"{LABEL}={owner()}"),
        *("--mount", f"type=bind,source={folder},target={MOUNT}", "--workdir", MOUNT),
        *("--entrypoint", "sh"),
    )
