"""Images made of programs of this machine: no registry is needed."""

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
    *("rm", "mv", "mkdir", "mkfifo", "ln", "touch", "id", "true", "dd"),
)


def make_image():
    """Builds it in the engine; small programs with their libraries, and Python at the path that tests use."""
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    standard = Path("/usr/lib") / Path(python).name
    extensions = [*(standard / "lib-dynload").glob("*.so")]
    links = {"/bin": "/usr/bin", **({sys.executable: python} if sys.executable != python else {})}
    return import_image(IMAGE, [*programs(*PROGRAMS), Path(python)], extensions, [standard], links)


def import_image(name, found, extensions=(), folders=(), links=None, change=()):
    """An image of those programs, the libraries that they and the extensions need, and folders."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in sorted({*found, *libraries([*found, *extensions])}):
            tar.add(path.resolve(), arcname=str(path), filter=plain)
        for folder in folders:
            tar.add(folder, filter=lambda one: None if re.search("__pycache__|/test", one.name) else plain(one))
        for at, target in (links or {}).items():
            link = tarfile.TarInfo(at.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        tmp = tarfile.TarInfo("tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(tmp)
    changes = [word for one in change for word in ("--change", one)]
    command = ["docker", "import", *changes, "-", name]
    subprocess.run(command, input=data.getvalue(), check=True, capture_output=True)
    return name


def programs(*names):
    return [Path(shutil.which(name, path="/usr/bin:/bin")) for name in names]


def libraries(found):
    said = subprocess.run(["ldd", *map(str, found)], capture_output=True, text=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+\.so\S*) \(0x", said)}


def plain(entry):
    entry.uid = entry.gid = 0
    return entry


def containers():
    """Whatever the engine knows of."""
    return subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=True).stdout.split()
