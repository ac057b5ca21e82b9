"""Pack the client in TypeScript, check what is in the package, and try it in a clean folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from scripts.release.building import ReleaseError, files_in
from scripts.release.imports import ROOT

PACKAGE = ROOT / "clients" / "typescript"
ALWAYS = ("package.json", "README.md", "LICENSE")
_HERE = Path(__file__).parent
_MADE = shutil.ignore_patterns("node_modules", "dist")
_SECONDS = 600


def why_not() -> str:
    """Say why nothing can be packed here, if so."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    return f"{' and '.join(missing)} missing: install Node 18 or newer" if missing else ""


def build(folder: Path) -> Path:
    """Copy the client into a folder, install its tools there and compile it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PACKAGE, folder, ignore=_MADE)
    shutil.copy(ROOT / "LICENSE", folder)
    told(folder, "npm", "ci")
    told(folder, "npm", "run", "build")
    return folder


def pack(built: Path, out: Path) -> Path:
    """Pack what was built into a folder."""
    for old in out.glob("*.tgz"):
        old.unlink()
    told(built, "npm", "pack", "--ignore-scripts", "--pack-destination", str(out.resolve()))
    (tarball,) = out.glob("*.tgz")
    return tarball


def wanted() -> set[str]:
    """Give every file that the package consists of: each source, compiled and described."""
    stems = [path.stem for path in (PACKAGE / "src").glob("*.ts")]
    return {f"dist/{stem}{end}" for stem in stems for end in (".js", ".d.ts")} | set(ALWAYS)


def problems_of_package(files: set[str], needed: set[str]) -> list[str]:
    """Say what a package lacks, and what does not belong into it."""
    lacking = [f"the npm package lacks {name}" for name in sorted(needed - files)]
    return lacking + [f"the npm package has {name}" for name in sorted(files - needed)]


def try_package(tarball: Path, built: Path, folder: Path) -> dict[str, Any]:
    """Install a package into an empty folder without a network, check its types and use it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n', encoding="utf-8")
    for name in ("npm_smoke.mjs", "npm_smoke_types.ts"):
        shutil.copy(_HERE / name, folder)
    offline = ("--offline", "--no-audit", "--no-fund")
    told(folder, "npm", "install", *offline, str(tarball.resolve()))
    others = {path.name for path in (folder / "node_modules").glob("[!.]*")} - {"fastbandit"}
    if others:
        raise ReleaseError(f"The client in TypeScript brings other packages: {sorted(others)}")
    compiler = str((built / "node_modules" / "typescript" / "bin" / "tsc").resolve())
    strict = ("--strict", "--noEmit", "--module", "nodenext", "--target", "es2022")
    told(folder, "node", compiler, *strict, "npm_smoke_types.ts")
    used: dict[str, Any] = json.loads(told(folder, "node", "npm_smoke.mjs").splitlines()[-1])
    return used


def release(out: Path, scratch: Path) -> tuple[Path, list[str], dict[str, Any]]:
    """Pack and try the client; give the package, its problems, and what was found."""
    built = build(scratch / "npm")
    tarball = pack(built, out)
    problems = problems_of_package(set(files_in(tarball)), wanted())
    used = try_package(tarball, built, scratch / "npm-clean")
    return tarball, problems, used


def told(folder: Path, *command: str) -> str:
    """Run a program in a folder, and give what it printed; raise where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        shown = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        raise ReleaseError(f"{' '.join(command)}: exit status {done.returncode}\n{shown}")
    return done.stdout
