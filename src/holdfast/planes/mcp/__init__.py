"""The MCP plane: sits between an MCP client and its servers, over stdio and streamable HTTP."""
