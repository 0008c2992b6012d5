"""Report files: JSON, JUnit, SARIF, Markdown and OpenTelemetry, and how they are written."""
