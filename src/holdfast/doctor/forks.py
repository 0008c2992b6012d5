"""Two processes forked from one, at one address: each must be served as the trial it belongs to."""

from __future__ import annotations

import asyncio
import sys

from holdfast.doctor.probe_site import Absent, ProbeSite, Unmet, started, trip_of
from holdfast.model.spec import Injection

FIX = "mount /proc so that processes of the same user can be seen, or use agent.isolation: worker"

_FORKS = """
import http.client, os, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
for name in ("stormy", "calm"):
    pid = os.fork()
    if not pid:
        os.read(0, 1)
        line = http.client.HTTPConnection(url.netloc, timeout=10)
        line.request("POST", url.path, '{"model": "doctor", "messages": [{"role": "user", "content": "Count."}]}')
        os.write(1, b"%s %d\\n" % (name.encode(), line.getresponse().status))
        os._exit(0)
    os.write(1, b"%d\\n" % pid)
os.wait(), os.wait()
"""


async def try_forks(probe_site: ProbeSite) -> str:
    """One of the two has a fault on its model; the other must not meet it."""
    if sys.platform != "linux":
        raise Absent("not on this system: a Python agent gets a new interpreter per trial")
    stormy, calm = trip_of("stormy", Injection("llm", "*", "rate_limit")), trip_of("calm")
    shared_address = await probe_site.site_planes.shared_address()
    try:
        url = f"{shared_address.environ['OPENAI_BASE_URL']}/chat/completions"
        with shared_address.serving(stormy) as first, shared_address.serving(calm) as second:
            async with started([sys.executable, "-I", "-S", "-c", _FORKS, url], probe_site.environ) as process:
                first(int(await _line(process)))
                second(int(await _line(process)))
                assert process.stdin is not None
                process.stdin.write(b"go")
                await process.stdin.drain()
                said = {await _line(process), await _line(process)}
    finally:
        await shared_address.close()
    if said != {"stormy 429", "calm 200"} or [met.mode for met in stormy.ledger] != ["rate_limit"] or calm.ledger:
        raise Unmet(f"two forked processes were not told apart: {', '.join(sorted(said))}", FIX)
    return "two at one address: the fault of one met by it alone"


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    if not line:
        _, err = await process.communicate()
        raise Unmet(f"a forked process ended: {err.decode('utf-8', 'replace').strip()[-300:]}", FIX)
    return line
