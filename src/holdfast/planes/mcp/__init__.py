"""The MCP plane: stands between an MCP client and its servers, over stdio and streamable HTTP."""
