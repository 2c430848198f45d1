"""Clean environments, and the two forms in which artist is distributed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
# Pip's settings (where packages come from) and nothing else of ours.
KEPT = ("PATH", "HOME", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE")


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment; `home` is the home and working folder of what runs in it."""

    folder: Path
    home: Path

    def pip(self, *arguments: str | Path) -> None:
        """Install something; versions are those of `constraints.txt`."""
        self.pip_runs("install", "--constraint", ROOT / "constraints.txt", *arguments)

    def pip_runs(self, *arguments: str | Path, **settings: str) -> None:
        """A command of pip, with variables of the environment."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        done = subprocess.run(
            [self.folder / "bin" / "python", "-m", "pip", "--quiet",
             "--disable-pip-version-check", *arguments],
            env=kept | settings, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def run(
        self, program: str, *arguments: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run an installed program in an empty home, or in a folder."""
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd or self.home,
            env={"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )


def interpreter(version: str) -> str | None:
    """A Python of this version, on the path or kept by pyenv."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    for candidate in (shutil.which(f"python{version}"), *map(str, reversed(kept))):
        if candidate and _works(candidate):
            return candidate
    return None


def _works(python: str) -> bool:
    """Whether it starts and can make environments; pyenv leaves stand-ins that do neither."""
    done = subprocess.run(
        [python, "-c", "import venv, ensurepip"], capture_output=True, check=False
    )
    return done.returncode == 0


def environment(python: str, folder: Path) -> Environment:
    """A new environment with nothing but pip."""
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True, capture_output=True)
    (folder / "home").mkdir()
    return Environment(folder / "venv", folder / "home")


def build(folder: Path) -> tuple[Path, Path]:
    """The source distribution of this tree, and the wheel built from that."""
    tools = environment(sys.executable, folder)
    tools.pip("hatchling")
    # Only what git would hand on: no caches, nothing that lies about.
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    tree = folder / "tree"
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    source = _hatchling(tools, tree, "sdist", folder / "dist", "*.tar.gz")
    shutil.unpack_archive(source, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return source, _hatchling(tools, unpacked, "wheel", folder / "dist", "*.whl")


def _hatchling(tools: Environment, tree: Path, target: str, out: Path, pattern: str) -> Path:
    command = [tools.folder / "bin" / "python", "-m", "hatchling", "build", "-t", target, "-d", out]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (candidate,) = out.glob(pattern)
    return candidate
