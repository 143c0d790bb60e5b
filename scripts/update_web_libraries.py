"""Download the JavaScript libraries of the web page and its tests, and record versions and hashes.

python scripts/update_web_libraries.py                       the newest versions
python scripts/update_web_libraries.py preact=11.2.0         this version of preact
python scripts/update_web_libraries.py --check               compare the files with their record

A file is changed in two ways: names of packages in imports become relative addresses, because the
page has no import map, and the reference to a source map is cut.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "src/byheart/interfaces/web/static/vendor"
TESTS = "tests/interfaces/web/page/vendor"
RECORD = ROOT / PAGE / "libraries.json"
# For each package: our file, and the file of the package that it is made from.
FILES = {
    "preact": {
        f"{PAGE}/preact.js": "dist/preact.mjs",
        f"{PAGE}/hooks.js": "hooks/dist/hooks.mjs",
        f"{PAGE}/preact-license.txt": "LICENSE",
    },
    "htm": {f"{PAGE}/htm.js": "dist/htm.module.js", f"{PAGE}/htm-license.txt": "LICENSE"},
    "axe-core": {f"{TESTS}/axe.min.js": "axe.min.js", f"{TESTS}/axe-license.txt": "LICENSE"},
}
_SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=\S+\s*$")


def adapt(content: bytes) -> bytes:
    """Make imports relative, and cut the reference to a source map."""
    return _SOURCE_MAP.sub(b"\n", content.replace(b'from"preact"', b'from"./preact.js"'))


def fetch(package: str, version: str) -> dict[str, object]:
    """Write the files of a package, and return their record."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--json", f"{package}@{version}"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        described = json.loads(packed.stdout)
        [entry] = described if isinstance(described, list) else described.values()
        with tarfile.open(Path(folder) / entry["filename"]) as archive:
            files = {}
            for ours, theirs in FILES[package].items():
                member = archive.extractfile(f"package/{theirs}")
                assert member is not None, f"{package} {entry['version']} has no file {theirs}"
                original = member.read()
                content = adapt(original) if ours.endswith(".js") else original
                (ROOT / ours).parent.mkdir(exist_ok=True)
                (ROOT / ours).write_bytes(content)
                files[ours] = {
                    "from": theirs,
                    "sha256_of_original": sha256(original),
                    "sha256": sha256(content),
                }
    return {"version": entry["version"], "integrity": entry["integrity"], "files": files}


def sha256(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def find_changed() -> list[str]:
    """Name the files that are not as their record says."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    recorded = {
        name: each["sha256"] for one in record.values() for name, each in one["files"].items()
    }
    return [
        name
        for name, expected in recorded.items()
        if not (ROOT / name).is_file() or sha256((ROOT / name).read_bytes()) != expected
    ]


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", metavar="PACKAGE=VERSION")
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    if given.check:
        changed = find_changed()
        print("\n".join(f"{name} is not the recorded file" for name in changed) or "as recorded")
        return 1 if changed else 0
    wanted = dict(each.split("=", 1) for each in given.versions)
    record = {package: fetch(package, wanted.get(package, "latest")) for package in FILES}
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for package, entry in record.items():
        print(f"{package} {entry['version']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
