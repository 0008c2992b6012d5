"""An image made of programs of this machine: no registry is needed."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

IMAGE = "holdfast-test:latest"
PROGRAMS = (
    *("sh", "cat", "env", "sleep", "setsid", "date", "yes", "head", "ls"),
    *("rm", "mkdir", "mkfifo", "ln", "touch", "id", "true", "dd"),
)


def make_image():
    """Builds it in the engine; small programs with their libraries, and Python at the path that tests use."""
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    found = [Path(shutil.which(name, path="/usr/bin:/bin")) for name in PROGRAMS] + [Path(python)]
    standard = Path("/usr/lib") / Path(python).name
    extensions = [*(standard / "lib-dynload").glob("*.so")]
    files = {*found, *libraries([*found, *extensions])}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in sorted(files):
            tar.add(path.resolve(), arcname=str(path), filter=plain)
        tar.add(standard, filter=lambda one: None if "__pycache__" in one.name or "/test" in one.name else plain(one))
        if sys.executable != python:
            link = tarfile.TarInfo(sys.executable.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, python
            tar.addfile(link)
    subprocess.run(["docker", "import", "-", IMAGE], input=data.getvalue(), check=True, capture_output=True)
    return IMAGE


def libraries(programs):
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+\.so\S*) \(0x", said)}


def plain(entry):
    entry.uid = entry.gid = 0
    return entry
