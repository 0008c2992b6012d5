"""Which protocol a service speaks."""

from __future__ import annotations

from holdfast.model.world import ServiceKind, ServiceSpec

_SCHEMES: dict[str, ServiceKind] = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "redis": "redis",
    "rediss": "redis",
}


def speaks(service: ServiceSpec) -> ServiceKind:
    """The protocol of a service; of one that is elsewhere, as its URL says."""
    if service.kind != "external":
        return service.kind
    scheme = (service.url or "").partition(":")[0].partition("+")[0].lower()
    return _SCHEMES.get(scheme, "external")
