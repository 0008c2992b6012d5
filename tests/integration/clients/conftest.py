from http_plane_places import bench, elsewhere, plain, secure

__all__ = ["bench", "elsewhere", "plain", "secure"]
