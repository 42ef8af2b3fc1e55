"""Where the measuring happens: folders, programs and a fresh S3 server when one is asked for."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import boto3
import msgspec

from benchmarks.measure import Cost, run
from benchmarks.tools import Tools, environment
from tests.support.seaweedfs import ACCESS_KEY, SECRET_KEY, seaweedfs_server

BUCKET = "bench"
SYNC_BELOW = 'find "{}" -type f -print0 | xargs -0 sync'
"""For a shell: bring all files below a folder to the disk."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much work there is. Files and tables are those of all four tasks together."""

    large_files: int = 64
    large_bytes: int = 22 << 20
    small_files: int = 200
    small_bytes: int = 64 << 10
    many_files: int = 1000
    many_bytes: int = 40 << 10
    local_bytes: int = 2 << 30
    simulated_bytes: int = 100 << 30
    live_files: int = 10_000
    lost_disk_records: int = 8_700_000
    replay_records: int = 1_000_000


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    """``server_dir`` holds the server's files, ``temporary`` what programs put into TMPDIR."""

    work: Path
    server_dir: Path
    temporary: Path
    tools: Tools
    sizes: Sizes
    turns: int

    def folder(self, name: str) -> Path:
        """Return an empty folder of that name."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    @contextmanager
    def server(self) -> Iterator[Mapping[str, str]]:
        """Run an empty S3 server with a bucket; yields the environment for its clients."""
        shutil.rmtree(self.server_dir, ignore_errors=True)
        self.server_dir.mkdir(parents=True)
        try:
            with seaweedfs_server(self.server_dir) as url:
                client = boto3.client(
                    "s3",
                    endpoint_url=url,
                    region_name="us-east-1",
                    aws_access_key_id=ACCESS_KEY,
                    aws_secret_access_key=SECRET_KEY,
                )
                client.create_bucket(Bucket=BUCKET)
                client.close()
                yield environment(self.work, url, self.temporary)
        finally:
            shutil.rmtree(self.server_dir, ignore_errors=True)

    def local_environment(self) -> Mapping[str, str]:
        return environment(self.work, "http://127.0.0.1:9", self.temporary)

    def run(self, env: Mapping[str, str], command: Sequence[str | Path], **options: object) -> Cost:
        return run(command, env=env, log=self.work / "last.log", **options)  # type: ignore[arg-type]

    def quietly(self, env: Mapping[str, str], *command: str | Path) -> None:
        """Run what is not measured; raises CalledProcessError with its output."""
        subprocess.run(
            [str(word) for word in command], env=dict(env), check=True, capture_output=True
        )
