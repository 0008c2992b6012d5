"""A run as a page: the documents that the viewer serves and `report.html` contains."""
