#!/usr/bin/env python3
"""Writes LICENSE-THIRD-PARTY: the licences of everything that is linked into the wheels and the C library.

The file names crates without their versions, so it changes only if a crate or a licence changes.
A crate that offers MIT is used under MIT. The notices of Rust's standard library come from the
installed toolchain.

    python3 packaging/third_party.py            # writes the file
    python3 packaging/third_party.py --check    # exits with status 1 if the file is not current
"""

from __future__ import annotations

import difflib
import html
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "LICENSE-THIRD-PARTY"
# The manifests of the linked libraries. The extension for OpenVINO links the C library.
MANIFESTS = ["adapters/c/Cargo.toml", "adapters/python/Cargo.toml"]
TARGETS = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
]
# The crates of the standard library that it uses on these targets.
STANDARD_LIBRARY = ["cfg-if", "gimli", "hashbrown", "libc", "rustc-demangle"]
INTRODUCTION = """\
The wheels and the C library of ndscatter contain compiled code of the components below, each under
the licence that follows its name. The licence texts come after the list. The licences of ndscatter
itself are in LICENSE-MIT and LICENSE-APACHE. The name std means the standard library of Rust.
"""


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_crates() -> dict[str, tuple[str, Path]]:
    """Returns the linked crates of other projects: name, licence expression and folder of the source."""
    crates = {}
    for manifest in MANIFESTS:
        metadata = json.loads(run("cargo", "metadata", "--format-version=1", "--manifest-path", manifest))
        packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
        targets = [argument for target in TARGETS for argument in ("--target", target)]
        tree = run("cargo", "tree", "--manifest-path", manifest, "--edges=no-build,no-dev,no-proc-macro", "--prefix=none", *targets)
        for name, version in re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE):
            package = packages[name, version]
            if package["source"]:
                crates[name] = (package["license"].replace("/", " OR "), Path(package["manifest_path"]).parent)
    return crates


def notices_of(crate: str, expression: str, folder: Path) -> tuple[str, list[str]]:
    """Returns the licence under which ndscatter uses a crate, and the texts of this licence in the crate."""
    files = sorted(file for file in folder.iterdir() if re.match(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT)", file.name.upper()))
    of_mit = [file for file in files if "MIT" in file.name.upper()]
    if "MIT" in re.split(r" OR ", expression):
        expression = "MIT"
        files = of_mit or [file for file in files if "Permission is hereby granted" in file.read_text()]
    texts = [file.read_text() for file in files]
    if not texts:
        sys.exit(f"the crate {crate} has no text of its licence {expression}")
    return expression, texts


def standard_library() -> dict[str, tuple[str, list[str]]]:
    """Returns the licence and the texts of Rust's standard library and of the crates in it."""
    folder = Path(run("rustc", "--print=sysroot").strip()) / "share/doc/rust"
    page = folder / "COPYRIGHT-library.html"
    if not page.exists():
        sys.exit(f"the Rust toolchain has no {page}; use a toolchain of rustup")
    own, *crates = html.unescape(re.sub(r"<[^>]+>", "", page.read_text())).split("\U0001f4e6 ")
    copyrights = sorted(set(re.findall(r"^ *(Copyright: .+)", own, re.MULTILINE)))
    licences = [(folder / "licenses" / name).read_text() for name in ("MIT.txt", "Unicode-3.0.txt")]
    found = {"std": ("MIT, and Unicode-3.0 for tables of characters", ["\n".join(copyrights), *licences])}
    for crate in crates:
        name = crate[: crate.index("\n")].rsplit("-", 1)[0]
        if name in STANDARD_LIBRARY:
            notice = re.search(r"LICENSE-MIT(?:\.\w+)?\n(.*?)(?=\n\s*(?:LICEN|COPY|NOTICE)\S*\n|\Z)", crate, re.DOTALL)
            if not notice:
                sys.exit(f"{page} has no MIT licence of {name}")
            found[f"{name} in std"] = ("MIT", [notice[1]])
    return found


def contents() -> str:
    """Returns the text of the file."""
    components = standard_library()
    for crate, (expression, folder) in linked_crates().items():
        components[crate] = notices_of(crate, expression, folder)
    # Equal texts are written once. Two texts are equal if they differ only in white space.
    users: dict[str, list[str]] = {}
    written: dict[str, str] = {}
    for name, (_, texts) in sorted(components.items()):
        for text in texts:
            key = " ".join(text.split())
            written.setdefault(key, "\n".join(line.rstrip() for line in text.strip().splitlines()))
            users.setdefault(key, []).append(name)
    listed = "".join(f"{name}: {licence}\n" for name, (licence, _) in sorted(components.items()))
    sections = [f"{'-' * 80}\n{', '.join(names)}\n\n{written[key]}\n" for key, names in users.items()]
    return "\n".join([INTRODUCTION, listed, *sections])


def main() -> None:
    current = contents()
    if sys.argv[1:] == ["--check"]:
        old = OUTPUT.read_text() if OUTPUT.exists() else ""
        if old != current:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), current.splitlines(True), OUTPUT.name, "current"))
            sys.exit(f"{OUTPUT.name} is not current; run: python3 packaging/third_party.py")
        print(f"{OUTPUT.name} is current")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        OUTPUT.write_text(current)


if __name__ == "__main__":
    main()
