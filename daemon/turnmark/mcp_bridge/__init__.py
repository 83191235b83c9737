"""The MCP bridge: a process of its own that speaks MCP on stdio and asks the daemon.

It holds no memory and no state. The MCP library is an extra (`turnmark[mcp]`) and is imported here
alone; the daemon never loads it.
"""
