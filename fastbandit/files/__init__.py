"""Files that are written whole or not at all: manifests, arrays mapped into memory."""
