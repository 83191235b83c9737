"""The systemd units: the one source of the text that is installed and that `deploy/` shows.

Each directive of the user unit works in a user manager: there nothing may be dropped from the
capability bounding set (so no PrivateDevices, ProtectKernelModules, ProtectClock), /proc/sys and
/sys can't always be mounted anew (tried: ProtectKernelTunables ends a start in a container with
226), and what needs a mount namespace is passed over where the kernel gives users none. The system
unit has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MADE_BY = "# Made by `turnmark setup service`; `turnmark setup service --undo` takes it away."

_HEAD = """\
[Unit]
Description=turnmark, a memory daemon for AI agents
# A start that fails five times in five minutes needs a person.
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
"""

_LIFE = """\
Restart=on-failure
RestartSec=2
# A configuration that can't be used (2) and a place that is taken (4) need a person.
RestartPreventExitStatus=2 4
WatchdogSec=60
# A large store is checked, and migrated, before it is served.
TimeoutStartSec=300
TimeoutStopSec=60
RuntimeDirectory=turnmark
RuntimeDirectoryMode=0700
"""

_ANY_MANAGER = """\
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
KeyringMode=private
LimitNOFILE=65536
TasksMax=512
"""

_SYSTEM_MANAGER = """\
DynamicUser=yes
StateDirectory=turnmark
StateDirectoryMode=0700
# Configuration: /etc/turnmark/config.toml, if there is one.
Environment=XDG_CONFIG_HOME=/etc TURNMARK_WORKSPACE=/var/lib/turnmark/memory
ProtectHome=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
PrivateMounts=yes
PrivateIPC=yes
ProtectHostname=yes
ProtectClock=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectProc=invisible
ProcSubset=pid
RemoveIPC=yes
DevicePolicy=closed
CapabilityBoundingSet=
SystemCallFilter=~@privileged @resources
# Never a link-local address (the metadata of cloud hosts) nor multicast.
IPAddressDeny=169.254.0.0/16 fe80::/10 multicast
MemoryMax=2G
"""


def user_unit(
    command: Sequence[str], writable: Sequence[str | Path], *, private_tmp: bool = True
) -> str:
    """Returns the unit for a user's own manager.

    `command` starts the daemon, its first word an absolute path; `writable` are the directories
    that it may write to, which must be there when it starts. Words may hold systemd's specifiers
    only where they were put on purpose: quote others with `literal`.
    """
    paths = " ".join(_quoted(str(path)) for path in writable)
    return "".join(
        (
            f"{MADE_BY}\n{_HEAD}",
            f"ExecStart={' '.join(_quoted(word) for word in command)}\n",
            _LIFE,
            "# All it writes to; everything else on the machine is read-only to it.\n",
            f"ReadWritePaths={paths}\n",
            "PrivateTmp=yes\n" if private_tmp else "",
            _ANY_MANAGER,
            "\n[Install]\nWantedBy=default.target\n",
        )
    )


def system_unit(command: Sequence[str]) -> str:
    """Returns the unit for a shared host: a user of its own that systemd makes up."""
    return "".join(
        (
            "# See deploy/README.md.\n",
            _HEAD,
            f"ExecStart={' '.join(_quoted(word) for word in command)}\n",
            _LIFE,
            _ANY_MANAGER,
            _SYSTEM_MANAGER,
            "\n[Install]\nWantedBy=multi-user.target\n",
        )
    )


def literal(word: str) -> str:
    """Returns a word so that systemd expands nothing in it."""
    return word.replace("%", "%%").replace("$", "$$")


def literal_path(path: Path) -> str:
    """Returns a path so that systemd expands nothing in it; here a `$` is an ordinary sign."""
    return str(path).replace("%", "%%")


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    needs = not word or any(sign in word for sign in " \t\"'\\;")
    return f'"{escaped}"' if needs else word


def deployed_units() -> dict[str, str]:
    """Returns the files of `deploy/` by name; a test compares them with what is there."""
    home = ("%h/.local/state/turnmark", "%h/.local/share/turnmark")
    return {
        "turnmark.service": user_unit(("%h/.local/bin/turnmark", "serve"), home),
        "turnmark-system.service": system_unit(("/opt/turnmark/bin/turnmark", "serve")),
    }
