"""Ignore generated files and file types that are not text.

There is no list of text extensions: it would miss `Makefile`, `LICENSE` and the next language.
Every other file is read, and ignored if its bytes are not text.
"""

from __future__ import annotations

import os
from pathlib import Path

from byheart.startup.late_patterns import late_pattern

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", "CVS", "_darcs"})

_FOLDER_NAMES = """
node_modules bower_components jspm_packages web_modules target __pycache__ __pypackages__
site-packages dist-packages venv virtualenv htmlcov elm-stuff CMakeFiles DerivedData
xcuserdata zig-cache zig-out dist-newstyle storybook-static nimcache __MACOSX lost+found
$RECYCLE.BIN
"""
_FOLDERS = frozenset(_FOLDER_NAMES.split())
_FOLDER_PATTERN = late_pattern(r".+\.(?:egg-info|dSYM|xcassets)|cmake-build-.+")

# These are ordinary words; they name output folders only beside the file of the matching tool.
_COMPILED = ("package.json", "build.gradle", "build.gradle.kts", "pom.xml", "CMakeLists.txt")
_PROJECT = (*_COMPILED, "pyproject.toml", "setup.py")
_FOLDERS_BESIDE = {
    "build": (*_PROJECT, "meson.build", "build.xml"),
    "dist": _PROJECT,
    "out": _COMPILED,
    "coverage": ("package.json", "Gemfile"),
    "vendor": ("go.mod", "composer.json", "Gemfile"),
    "Pods": ("Podfile",),
    "Carthage": ("Cartfile",),
    "deps": ("mix.exs", "rebar.config"),
    "_build": ("mix.exs", "rebar.config", "dune-project", "conf.py", "Makefile"),
    "_site": ("_config.yml", "_config.yaml"),
    "env": ("requirements.txt", "setup.py", "pyproject.toml", "Pipfile"),
}
# A folder that contains one of these files is generated: an environment or a cache.
_MARKERS = {"pyvenv.cfg": "virtual environment", "CACHEDIR.TAG": "cache folder"}

_FILE_NAMES = """
package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock
Cargo.lock poetry.lock uv.lock pdm.lock Pipfile.lock conda-lock.yml pixi.lock Gemfile.lock
composer.lock go.sum go.work.sum mix.lock pubspec.lock Podfile.lock Package.resolved
flake.lock  packages.lock.json gradle.lockfile Thumbs.db desktop.ini
"""
_FILES = frozenset(_FILE_NAMES.split())
_FILE_PATTERN = late_pattern(
    r".+(?:[.-]min\.(?:js|mjs|cjs|css)|\.(?:js|mjs|cjs|css|ts)\.map|~|___jb_(?:tmp|old)___"
    r"|\.(?:tmp|temp|swp|swo|part|partial|crdownload|download|lock|pid))|~\$.+|#.+#"
)

# Includes formats made of letters that are not text to read: drawings, meshes, certificates.
_NOT_TEXT = {
    "pictures, sound, film": """
        png jpg jpeg jpe gif bmp tif tiff webp avif heic heif jxl jp2 ico icns cur psd psb xcf
        ai eps  ps svg svgz raw cr2 cr3 nef arw dng orf rw2 raf tga dds exr hdr pbm pgm ppm pnm
        pcx kra  sketch fig indd afdesign afphoto mp3 wav flac ogg oga opus m4a m4b aac wma aif
        aiff mid midi  amr ape mp4 m4v mov avi mkv webm mpg mpeg mpe wmv flv ogv 3gp m2ts vob
        swf blend fbx glb gltf  stl ply dae 3ds usdz dwg dxf step stp iges skp
    """,
    "archives, packages, images of disks": """
         zip gz tgz bz2 tbz2 xz txz zst lz lz4 lzma lzo br 7z rar tar cab arj cpio iso img dmg
        vhdx  vmdk qcow2 ova deb rpm apk aab ipa msi msix pkg snap flatpak appimage jar war
        ear whl egg gem  crate nupkg vsix xpi crx
    """,
    "programs and what compilers make": """
         exe dll so dylib a lib o obj ko elf bin sys efi class dex pyc pyo pyd pdb ilk idb  wasm
        rlib rmeta beam hi gch pch nib uf2 rom
    """,
    "data and models": """
         db sqlite sqlite3 db3 s3db mdb accdb dbf frm ibd ldb sst rdb parquet feather arrow orc
        avro npy  npz mat h5 hdf5 nc grib pkl pickle joblib rds rda rdata sav dta sas7bdat pt
        pth ckpt safetensors  onnx tflite gguf ggml pb caffemodel mlmodel bag pcap pcapng
        tfrecord lmdb mmdb
    """,
    "offices, books, fonts; what is not read yet": """
         doc xls xlt xlsb xlsx xlsm ppt pps pptx pptm odt ods odp odg rtf pages numbers one
        onepkg  mpp vsd vsdx epub mobi azw azw3 djvu chm xps pst ost ttf otf woff woff2 eot fon
        pfb
    """,
    "certificates, signatures": """
         crt cer der csr crl p7b p7c p7s sha1 sha256 sha512 md5  lnk url webloc torrent suo
    """,
}
NOT_TEXT = frozenset(each for names in _NOT_TEXT.values() for each in names.split())
# Companion files of SQLite databases and of our own stores.
_DATABASE = late_pattern(
    r".+\.(?:db|sqlite3?|db3)[-.](?:wal|shm|journal|index|stats|lock|backup).*"
)


def find_folder_rule(folder: Path, name: str) -> str | None:
    """Name the rule that ignores a folder."""
    if name in _FOLDERS or _FOLDER_PATTERN.fullmatch(name):
        return name
    beside = _FOLDERS_BESIDE.get(name, ())
    parent = os.fspath(folder.parent)
    for other in beside:
        if os.path.lexists(f"{parent}/{other}"):
            return f"{name} beside {other}"
    own = os.fspath(folder)
    return next((rule for file, rule in _MARKERS.items() if os.path.lexists(f"{own}/{file}")), None)


def find_marked_folders(marker: str) -> list[str]:
    """Name the folders whose rule depends on a marker file; "" is the marker's own folder."""
    if marker in _MARKERS:
        return [""]
    return [name for name, files in _FOLDERS_BESIDE.items() if marker in files]


def find_file_rule(name: str) -> str | None:
    """Name the rule that ignores a file."""
    if name in _FILES or _FILE_PATTERN.fullmatch(name):
        return "generated or temporary file"
    dot = name.rfind(".")
    if dot > 0 and name[dot + 1 :].lower() in NOT_TEXT:
        return "not a text file type"
    return "not a text file type" if _DATABASE.fullmatch(name) else None
