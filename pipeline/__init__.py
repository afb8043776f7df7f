"""The job: options, reading, grouping, writing, manifest, graph and command line."""
