"""Any store that is a folder of files: configured, not coded.

Fits engines that keep immutable files and some small metadata (as Lucene does), and custom stores
of Kafka Streams. Files that match ``immutable`` are held open and sent as they are; their hashes
are remembered, so an unchanged file is not read again. All others are read into copies until two
looks agree, contents included, and until the whole folder was the same before and after: what is
taken is what the folder held at one moment. An engine that writes into its files without pause
never holds still that long; take such a store while it is stopped.
"""

from snapstore.backends.files.backend import FilesBackend as FilesBackend

__all__ = ["FilesBackend"]
