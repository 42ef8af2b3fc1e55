"""Every verb: the module that holds it, and what it does in a line."""

from typing import Final

SHORT_HELPS: Final = {
    "init": "Make a repository.",
    "discover": "Stores found, their offsets and sizes; reads only.",
    "snapshot": "Take snapshots of all or the named stores.",
    "list": "Snapshots, the newest of each store first.",
    "show": "One snapshot: positions, fence, sizes, files.",
    "diff": "Files and bytes shared, added, gone.",
    "restore": "Bring stores back below a state directory.",
    "replay": "Apply the records after a snapshot to restored stores.",
    "status": "How fresh the snapshots are, and whether one could be restored now.",
    "verify": "Whether snapshots can be restored.",
    "drill": "Restore into a scratch folder and compare with a rebuild.",
    "fsck": "What the application will do with its stores at the next start; mend it.",
    "prepare": "Before a start: mend, else restore, else leave it to the application.",
    "pin": "Keep snapshots regardless of retention.",
    "unpin": "Leave snapshots to retention again.",
    "delete": "Take snapshots out of the catalog.",
    "prune": "Remove old snapshots and free their bytes.",
    "repair": "Rebuild lost catalog entries; take out what cannot be restored.",
    "config": "What is configured, where it came from, whether it works.",
    "plugins": "Storages, backends and layouts there are.",
    "demo": "Watch it save and restore a store; needs no Kafka.",
}
"""What each command's own ``short_help`` says, so that help need not import twenty modules."""

COMMANDS: Final = {name: f"snapstore.cli.commands.{name}:command" for name in SHORT_HELPS}
