"""The commands of `turnmark`: a module each, imported only when its command is called.

A module has `configure(parser)`, which declares its own arguments, and `run(invocation)`, which
does the work and returns the exit code. `registry` lists them; `invocation` is what each one gets:
options, streams and the connection to the daemon. Commands print what the socket's methods
answer; nothing is decided here that a client could not decide.
"""
