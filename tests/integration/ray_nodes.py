"""A cluster of two nodes on 127.0.0.1, for tests: `python ray_nodes.py FOLDER`, then words on its stdin.

`kill` ends the second node as a power failure would, `end` all of it. The second node has the label `second`; below
FOLDER/overlay, if it is there, it has another Holdfast.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ray.cluster_utils import Cluster


def main(folder: Path) -> None:
    plain = {"include_dashboard": False, "object_store_memory": 80_000_000}
    head = {"num_cpus": 2, "ray_client_server_port": _free_port(), "temp_dir": str(folder / "ray"), **plain}
    full = {"_system_config": {"automatic_object_spilling_enabled": False}}
    cluster = Cluster(initialize_head=True, connect=False, head_node_args={**head, **full})
    if (folder / "overlay").is_dir():
        os.environ["PYTHONPATH"] = str(folder / "overlay")
    node = cluster.add_node(num_cpus=2, resources={"second": 1}, **plain)
    (folder / "address").write_text(f"{cluster.address} ray://127.0.0.1:{head['ray_client_server_port']}")
    for word in map(str.strip, sys.stdin):
        if word == "kill":
            cluster.remove_node(node, allow_graceful=False)
        if word == "end":
            break
    cluster.shutdown()


def _free_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
