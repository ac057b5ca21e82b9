"""`make release`: build, check what was built, try it in clean environments, and report.

Exits with 0 where all is well, 1 where something must not be released, and 3 where all else is
well but the audit could not be asked.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from fastbandit.progress import Progress, progress_bar
from scripts.release import building, environments, npm_package, reports, trying
from scripts.release.building import ReleaseError
from scripts.release.imports import ROOT, extras
from scripts.release.material import make_material

CONSTRAINTS = ROOT / "constraints.txt"
NOT_TRIED = ("cluster-dev", "dev", "docs", "lab", "peers", "release")
"""Extras of a checkout alone, whose own targets install and use them."""
LARGEST_DOWNLOAD = 150e6
SLOWEST_IMPORT = 0.2
UNASKED = 3


@dataclass
class Release:
    """What was found, told in the end and kept beside what was built."""

    problems: list[str] = field(default_factory=list)
    audits: dict[str, str] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        if self.problems or "vulnerable" in self.audits.values():
            return 1
        return 0 if set(self.audits.values()) <= {"clean"} else UNASKED

    def write(self, path: Path) -> None:
        """Write all that was found so far, whole or not at all."""
        told = {**self.told, "problems": self.problems, "status": self.status}
        beside = path.with_name(f"{path.name}.part")
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="The folder.")
@click.option("--extra", "named", multiple=True, help="Try this extra only; may be given again.")
@click.option("--no-extras", is_flag=True, help="Try the base install alone.")
@click.option("--keep", is_flag=True, help="Keep the environments.")
def main(out: Path, named: tuple[str, ...], no_extras: bool, keep: bool) -> None:
    """Build a release into dist/, and try it in clean environments: takes some minutes."""
    groups = [] if no_extras else groups_for(named)
    out.mkdir(exist_ok=True)
    release, scratch = Release(), out / "environments"
    with progress_bar("Releasing") as progress:
        try:
            make_release(release, out, groups, progress=progress)
        except ReleaseError as error:
            release.problems.append(str(error))
        finally:
            if not keep:
                shutil.rmtree(scratch, ignore_errors=True)
    release.write(out / "release.json")
    click.echo("\n".join(lines_of(release)))
    sys.exit(release.status)


def groups_for(named: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Give the extras to try, each alone, and those that belong together."""
    if named:
        return [(name,) for name in named]
    alone = [(name,) for name in extras() if name not in NOT_TRIED]
    return [*alone, *trying.COMBINED]


def make_release(
    release: Release, out: Path, groups: list[tuple[str, ...]], *, progress: Progress
) -> None:
    """Do all steps; one extra that fails does not hide the others."""
    steps = 5 + len(groups)
    progress(0, steps, "Building")
    trying.needs()  # of what is built, should files change meanwhile
    wheel, source = building.build(out, CONSTRAINTS)
    wanted = building.sources()
    release.problems += building.problems_of_wheel(building.files_in(wheel), wanted)
    release.problems += building.problems_of_source(building.files_in(source), wanted)
    release.told["files"] = {path.name: path.stat().st_size for path in (wheel, source)}
    progress(1, steps, "Making what is tried")
    material = make_material(out / "environments" / "material")
    for step, archive in ((2, wheel), (3, source)):
        progress(step, steps, f"Trying {archive.name}")
        try_base(release, archive, material, out)
        release.write(out / "release.json")
    progress(4, steps, "Packing the client in TypeScript")
    try_npm(release, out)
    release.write(out / "release.json")
    for step, names in enumerate(groups, start=5):
        progress(step, steps, f"Trying {','.join(names)}")
        try:
            try_extras(release, wheel, names, out)
        except ReleaseError as error:
            release.problems.append(f"extra {','.join(names)}: {error}")
        release.write(out / "release.json")
    progress(steps, steps, "Done")


def try_base(release: Release, archive: Path, material: Path, out: Path) -> None:
    """Install an archive without extras, measure it, and use it."""
    is_wheel = archive.suffix == ".whl"
    folder = out / "environments" / ("wheel" if is_wheel else "source")
    made = environments.make_environment(folder, archive, CONSTRAINTS)
    told: dict[str, Any] = {"used": trying.try_base(made, material)}
    if is_wheel:
        told |= measured(made, archive)
        release.problems += problems_of(told)
        report(release, made, "base", out)
    release.told["base" if is_wheel else "source"] = told
    shutil.rmtree(folder)


def try_npm(release: Release, out: Path) -> None:
    """Pack the client in TypeScript and use it, where there is Node; it is not published."""
    if why := npm_package.why_not():
        release.told["npm"] = {"skipped": why}
        return
    try:
        tarball, problems, used = npm_package.release(out, out / "environments")
    except ReleaseError as error:
        release.problems.append(str(error))
        return
    release.problems += problems
    release.told["files"][tarball.name] = tarball.stat().st_size
    release.told["npm"] = {"used": used}


def measured(made: environments.Environment, archive: Path) -> dict[str, Any]:
    """Measure the sizes and import times of a base install."""
    return {
        "downloaded_bytes": environments.downloaded_bytes(made, archive),
        "unpacked_bytes": environments.unpacked_bytes(made),
        "import_s": environments.import_seconds(made, "import fastbandit"),
        "frozen_import_s": environments.import_seconds(made, "from fastbandit import FrozenBandit"),
    }


def problems_of(told: dict[str, Any]) -> list[str]:
    """Say which bars a base install misses."""
    downloaded, seconds = sum(told["downloaded_bytes"].values()), told["import_s"]
    return [
        said
        for is_missed, said in (
            (downloaded > LARGEST_DOWNLOAD, f"the base downloads {downloaded / 1e6:.0f} MB"),
            (seconds > SLOWEST_IMPORT, f"import fastbandit takes {seconds:.3f} s"),
        )
        if is_missed
    ]


def try_extras(release: Release, wheel: Path, names: tuple[str, ...], out: Path) -> None:
    """Install the wheel with some extras, and try what they promise."""
    name = ",".join(names)
    folder = out / "environments" / "-".join(names)
    try:
        made = environments.make_environment(folder, wheel, CONSTRAINTS, name)
        report(release, made, "-".join(names), out)
        size = sum(environments.unpacked_bytes(made).values())
        tried = trying.try_extra(made, *names)
        release.told[name] = {"unpacked_bytes": size, **asdict(tried)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(release: Release, made: environments.Environment, name: str, out: Path) -> None:
    """Write the bill of materials, the licences and the audit of an environment."""
    folder = out / "reports"
    folder.mkdir(exist_ok=True)
    reports.write_bill(made, folder / f"{name}.cdx.json", ROOT / "pyproject.toml")
    rows = reports.write_licences(made, folder / f"{name}.licences.json")
    release.problems += [
        f"extra {name}: {said}"
        for said in reports.problems_of_licences(rows, reports.read_allowed())
    ]
    audit = reports.audit(made, folder / f"{name}.audit.json")
    release.audits[name] = audit.state
    release.told.setdefault("audits", {})[name] = asdict(audit)


def lines_of(release: Release) -> Iterable[str]:
    """Say what was built, measured and found."""
    for name, size in release.told.get("files", {}).items():
        yield f"built {name}: {size / 1e6:.2f} MB"
    if base := release.told.get("base"):
        downloaded, unpacked = (
            sum(base[key].values()) / 1e6 for key in ("downloaded_bytes", "unpacked_bytes")
        )
        yield f"base install: {downloaded:.0f} MB downloaded, {unpacked:.0f} MB on disk"
        yield f"import fastbandit: {1e3 * base['import_s']:.0f} ms"
        yield f"first use of FrozenBandit: {1e3 * base['frozen_import_s']:.0f} ms"
    if skipped := release.told.get("npm", {}).get("skipped"):
        yield f"NOT PACKED, the client in TypeScript: {skipped}"
    for name, told in release.told.items():
        if "modules" in told:
            size = told["unpacked_bytes"] / 1e6
            yield (
                f"extra {name}: {told['modules']} modules and {told['commands']} commands, "
                f"{size:.0f} MB on disk"
            )
    for name, audit in release.told.get("audits", {}).items():
        yield f"audit of {name}: {audit['state']}{': ' + audit['why'] if audit['why'] else ''}"
        yield from (f"  {found}" for found in audit["found"])
    yield from (f"PROBLEM: {said}" for said in release.problems)
    yield {
        0: "All is well.",
        UNASKED: "All is well but the audit: it could not be asked, which is not a pass.",
    }.get(release.status, "This must not be released.")


if __name__ == "__main__":
    main()
