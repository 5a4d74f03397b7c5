#!/usr/bin/env python3
"""Checks the version and the addresses of all packages, and refuses to publish without the addresses.

The one place is `[workspace.package]` and `[workspace.metadata]` in Cargo.toml. The members of the
workspace inherit from it. Other files have copies, which this program compares and writes. Before
publishing, replace the addresses on the host `.invalid` in Cargo.toml and run `--write`.

    python3 packaging/names.py               # checks that all copies agree with Cargo.toml
    python3 packaging/names.py --write       # writes the values of Cargo.toml to the copies
    python3 packaging/names.py --publish     # also refuses addresses that are not filled in
    python3 packaging/names.py --self-test   # checks this program on changed copies of the files
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
ADDRESSES = ["repository", "homepage", "documentation", "security-contact"]
# The requirement of a package on another package of this repository.
REQUIREMENT = re.compile(r'(?<=version = ")([^"]*)(?=", path = ")')


def field(name: str) -> re.Pattern[str]:
    """Returns the pattern of the value of a quoted TOML or CFF field that stands on a line by itself."""
    return re.compile(rf'(?m)(?<=^{re.escape(name)} = ")([^"]*)(?="$)|(?<=^{re.escape(name)}: ")([^"]*)(?="$)')


# The copies: file, pattern of the value, and key of the value.
COPIES: list[tuple[str, re.Pattern[str], str]] = [
    ("adapters/openvino/pyproject.toml", field("version"), "version"),
    ("CITATION.cff", field("version"), "version"),
    ("CITATION.cff", field("repository-code"), "repository"),
    ("CITATION.cff", field("url"), "homepage"),
    ("SECURITY.md", re.compile(r"(?<=^Contact: <)([^>]*)(?=>$)", re.MULTILINE), "security-contact"),
    ("fuzz/oss-fuzz/project.yaml", field("homepage"), "homepage"),
    ("fuzz/oss-fuzz/project.yaml", field("main_repo"), "repository"),
    ("fuzz/oss-fuzz/Dockerfile", re.compile(r"(?<=git clone --depth 1 )(\S+)"), "repository"),
]
for project in ("adapters/openvino/pyproject.toml", "adapters/python/pyproject.toml"):
    COPIES += [(project, field(key), key) for key in ADDRESSES[:3]]


def manifests() -> list[str]:
    """Returns the manifests of the workspace's members that are published."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    found = [(Path(member) / "Cargo.toml").as_posix() for member in members]
    return [file for file in found if tomllib.loads((ROOT / file).read_text())["package"].get("publish", True)]


def values(root: Path) -> dict[str, str]:
    """Returns the version and the addresses of Cargo.toml."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    return workspace["package"] | workspace["metadata"]


def disagreements(root: Path) -> list[str]:
    """Returns a sentence for each package or copy that does not agree with Cargo.toml."""
    wanted, found = values(root), []
    for manifest in manifests():
        text = (root / manifest).read_text()
        package = tomllib.loads(text)["package"]
        for key in ["version", *ADDRESSES[:3]]:
            if package.get(key) != {"workspace": True}:
                found.append(f"{manifest}: the package must have the line `{key}.workspace = true`")
        for match in REQUIREMENT.finditer(text):
            if match[0] != wanted["version"]:
                found.append(f"{manifest}: a path dependency requires {match[0]}, and the version is {wanted['version']}")
    for file, pattern, key in COPIES:
        copies = [match[0] for match in pattern.finditer((root / file).read_text())]
        if copies != [wanted[key]]:
            found.append(f"{file}: {key} is {copies}, and must be {wanted[key]!r} once")
    return found


def placeholders(root: Path) -> list[str]:
    """Returns a sentence for each address that is not filled in."""
    wanted, found = values(root), []
    for key in ADDRESSES:
        host = urlsplit(wanted[key]).hostname or urlsplit(wanted[key]).path
        if not host or host.endswith(".invalid"):
            found.append(f"Cargo.toml: {key} is the placeholder {wanted[key]!r}; fill it in and run: python3 packaging/names.py --write")
    return found


def write(root: Path) -> None:
    """Writes the values of Cargo.toml to the copies."""
    wanted = values(root)
    for file, pattern, key in [*COPIES, *((manifest, REQUIREMENT, "version") for manifest in manifests())]:
        path = root / file
        path.write_text(pattern.sub(lambda _: wanted[key], path.read_text()))


def self_test() -> None:
    """Checks that placeholders and wrong copies are refused, and that filled-in addresses are accepted."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file in {"Cargo.toml", *manifests(), *(file for file, _, _ in COPIES)}:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)
        manifest = root / "Cargo.toml"
        for key in ADDRESSES:
            manifest.write_text(re.sub(rf'(?m)^{key} = ".*"', f'{key} = "https://{key}.example/name"', manifest.read_text()))
        assert len(disagreements(root)) == 12, "each changed address must be reported in each copy"
        write(root)
        assert not disagreements(root) + placeholders(root), "filled-in addresses must be accepted"
        for key in ADDRESSES:
            filled = manifest.read_text()
            manifest.write_text(filled.replace(f"https://{key}.example", f"https://{key}.invalid"))
            assert len(placeholders(root)) == 1, f"the placeholder of {key} must be refused"
            manifest.write_text(filled)
        manifest.write_text(re.sub(r'(?m)^version = ".*"', 'version = "7.0.0"', manifest.read_text()))
        assert any("CITATION.cff" in line for line in disagreements(root)), "another version must be refused"
        assert any("adapters/c/Cargo.toml" in line for line in disagreements(root)), "another requirement must be refused"
        write(root)
        assert not disagreements(root), "the written version must be accepted"
    print("the self-test of the check passed")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        self_test()
    if arguments == ["--write"]:
        write(ROOT)
    if arguments not in ([], ["--write"], ["--publish"], ["--self-test"]):
        sys.exit(__doc__)
    problems = disagreements(ROOT) + (placeholders(ROOT) if arguments == ["--publish"] else [])
    if problems:
        sys.exit("\n".join(problems))
    print("the version and the addresses of all packages agree")


if __name__ == "__main__":
    main()
