"""Contract suites and fault injection for authors of storages, backends and layouts."""
