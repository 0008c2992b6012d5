"""A run as a page: the documents that the viewer serves and that `report.html` carries."""
