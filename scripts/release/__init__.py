"""How a release is built and tried before anyone installs it: docs/releasing.md."""
